"""Every format draws every section of every run, escapes what users write, fits eighty columns."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser

import pytest

from browsing import uncoloured
from builders import event, run_of
from compilescope.record.bodies import FixOutcome, GraphCaptured
from compilescope.record.fix_search import Losses
from compilescope.report.blocks import Document, Excerpt, Part
from compilescope.report.document import ABOUT, all_sections, report_document
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.sarif import to_sarif
from compilescope.report.render.structured import to_json
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from samples import CODE, RUNS, full_run, hostile_run

DEPTHS = {"summary": False, "full": True}


@cache
def document(name: str, *, full: bool = True) -> Document:
    return report_document(Reading(RUNS[name], full=full))


def page(documents: Document) -> str:
    return to_page([documents])


def as_json(drawn: Document) -> str:
    reading = next(Reading(run) for run in RUNS.values() if run.header.run in drawn.title)
    return to_json([drawn], [reading.digest])


def as_sarif(drawn: Document) -> str:
    return to_sarif([drawn])


FORMATS = {
    "terminal": to_text,
    "md": to_markdown,
    "fragment": to_html,
    "html": page,
    "json": as_json,
    "sarif": as_sarif,
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", RUNS)
def test_every_format_draws_every_run(name: str, depth: str, form: str) -> None:
    drawn = document(name, full=DEPTHS[depth])
    text = FORMATS[form](drawn)
    assert RUNS[name].header.run in text.replace("\\", "")
    if form != "sarif":  # It carries findings, not sections.
        for part in drawn.parts:
            assert part.title in text


def test_every_section_is_drawn_in_some_run() -> None:
    """A section that no sample fills would never be drawn by any of these tests."""
    documents = [document(name, full=full) for name in RUNS for full in DEPTHS.values()]
    drawn = {part.id for made in documents for part in made.parts}
    assert {section.id for section in all_sections()} <= drawn


def test_an_empty_run_has_no_section_about_nothing() -> None:
    assert [part.id for part in document("empty").parts] == ["summary", "measured"]


@pytest.mark.parametrize("name", RUNS)
def test_the_terminal_report_fits_eighty_columns(name: str) -> None:
    lines = to_text(document(name), width=80).splitlines()
    # A diff and a command stay whole: they are there to be copied.
    lines = [line for line in lines if " | tee " not in line]
    assert max(len(line) for line in lines if not line.lstrip().startswith(("-", "+"))) <= 80


def test_no_colour_unless_asked() -> None:
    assert "\x1b[" not in to_text(document("full"))
    assert "\x1b[" in to_text(document("full"), colour=True)


def test_what_users_write_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in to_text(report_document(Reading(hostile_run(), full=True)))


class _Tags(HTMLParser):
    """Which elements and attributes a page really has, by Python's own parser."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("draw", [to_html, page])
def test_html_escapes_what_users_write(draw: object) -> None:
    html = draw(document("hostile"))  # type: ignore[operator]
    parser = _Tags()
    parser.feed(html)
    names = [tag for tag, _ in parser.tags]
    assert names.count("script") == (1 if draw is page else 0)
    assert "img" not in names
    assert not [attrs for _, attrs in parser.tags if any(name.startswith("on") for name in attrs)]
    assert "&lt;script&gt;" in html
    assert "\x00" not in html and "\x1b" not in html and "\u202e" not in html


def test_ids_on_a_page_are_unique_also_with_several_runs() -> None:
    parser = _Tags()
    parser.feed(to_page([document("full"), document("full")]))
    ids = [attrs["id"] for _, attrs in parser.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_links_within_a_page_lead_somewhere() -> None:
    for name in RUNS:
        parser = _Tags()
        parser.feed(page(document(name)))
        ids = {attrs.get("id") for _, attrs in parser.tags}
        for tag, attrs in parser.tags:
            if tag == "a":
                assert (attrs.get("href") or "#")[1:] in ids, attrs


def test_a_page_asks_for_nothing_outside_itself() -> None:
    html = page(document("full"))
    parser = _Tags()
    parser.feed(html)
    assert not [attrs for _, attrs in parser.tags if "src" in attrs or tag_is_remote(attrs)]
    assert "default-src 'none'" in html


def tag_is_remote(attrs: dict[str, str | None]) -> bool:
    return any((value or "").startswith(("http:", "https:", "//")) for value in attrs.values())


def test_markdown_escapes_what_users_write() -> None:
    text = to_markdown(document("hostile"))
    outside_code = re.sub(r"(`+).*?\1", "", text.replace("\\`", ""), flags=re.S)
    assert "<script>" not in outside_code.replace("\\<script\\>", "")
    assert "<img" not in outside_code.replace("\\<img", "")


@pytest.mark.parametrize("form", ["terminal", "md", "fragment"])
@pytest.mark.parametrize("columns", [(2**62, None), (2**31, 2**62), (-5, 2**62), (3, -(2**62))])
def test_a_mark_outside_of_its_line(form: str, columns: tuple[int, int | None]) -> None:
    """Anyone may have written the run. What is drawn is as long as the line, not as its numbers."""
    drawn = Document("t", "", (Part("a", "A", (Excerpt("    x = y", *columns),)),))
    assert len(FORMATS[form](drawn)) < 500_000


def test_json_has_the_blocks_of_every_section() -> None:
    data = json.loads(as_json(document("full")))
    (report,) = data["reports"]
    sections = {section["id"]: section for section in report["sections"]}
    assert {"summary", "breaks", "recompiles", "failures", "measured"} <= set(sections)
    assert sections["breaks"]["blocks"][0]["block"] == "item"
    assert report["summary"]["graphs"] == 1
    assert {"break", "recompile", "failure"} <= {f["kind"] for f in report["findings"]}


def test_carets_stand_under_the_expression() -> None:
    lines = to_text(document("full")).splitlines()
    at = next(i for i, line in enumerate(lines) if "if h.mean() > 0:" in line)
    start = lines[at].index("h.mean() > 0")
    assert lines[at + 1] == " " * start + "^" * len("h.mean() > 0")


def test_the_page_marks_the_expression() -> None:
    assert "<mark>h.mean() &gt; 0</mark>" in uncoloured(page(document("full")))


def test_each_kind_of_event_shows() -> None:
    text = to_text(document("full"), width=80)
    for words in (
        "GB0170",
        "test it in the caller",
        "expected 2, got 3",
        "hit the recompile limit",
        "BackendCompilerFailed",
        "mutated inputs",
        "Not recorded on torch",
        "Internal error",
        "Unexplained skips",
        "1 miss",
    ):
        assert words in " ".join(text.split()), words


def test_kinds_that_other_sources_append_show() -> None:
    text = " ".join(to_text(document("later"), width=100).split())
    for words in ("alignment", "multiples of 16", "Pad it.", "output[0]", "step_ms", "±0.1"):
        assert words in text, words


def test_what_to_do_first_is_said_once() -> None:
    """A page at its top, a summary above the list of causes; where every cause is told at length
    anyway, nowhere."""
    drawn = report_document(Reading(RUNS["full"], full=True, page=True))
    assert "Start here" in to_page([drawn])
    assert "Start here" in to_text(document("full", full=False))
    assert "Start here" not in to_text(document("full"))
    assert "Start here" not in to_text(document("empty", full=False))


def test_the_first_divergence_of_ranks_is_named() -> None:
    text = " ".join(to_text(document("ranks")).split())
    assert "Rank 1 diverges." in text
    assert "rank 1 diverges after 1 identical step" in text
    assert "broke the graph of forward (model.py:6) at line 8: Data-dependent branching" in text
    assert "nothing more to compile" in text


def test_verdicts() -> None:
    graph = GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE)
    clean = to_text(report_document(Reading(run_of(event(graph, number=1)))))
    assert "1 graph, no graph breaks, no recompiles." in clean
    assert "Nothing was compiled." in to_text(document("empty", full=False))
    assert "Truncated" in to_text(document("nothing", full=False))


@pytest.mark.parametrize("name", RUNS)
def test_a_section_that_is_not_imported_has_nothing_to_say(name: str) -> None:
    asked = {section.id for section in all_sections(RUNS[name])}
    for section in all_sections():
        if section.id not in asked:
            assert not section.build(Reading(RUNS[name], full=True)), section.id
    assert len(asked) >= len(all_sections()) - len(ABOUT)


def test_sections_are_ordered_and_unique() -> None:
    orders = [section.order for section in all_sections()]
    assert orders == sorted(set(orders))


def test_a_full_run_is_told_at_both_depths() -> None:
    short, long = (to_text(report_document(Reading(full_run(), full=f))) for f in (False, True))
    assert len(short) < len(long)
    assert "    Stack\n" in long and "    Stack\n" not in short


def test_a_warm_call_of_more_nanoseconds_than_a_float_holds() -> None:
    """Only a damaged run says so; the rest of it is drawn all the same."""
    fixed = FixOutcome("verified", before=Losses(breaks=1), warm_call=(1e300, 0.001))
    drawn = to_text(report_document(Reading(run_of(event(fixed)), full=True)))
    assert "a warm call" in drawn and "1.0 ms" in drawn
