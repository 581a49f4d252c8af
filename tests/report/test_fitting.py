"""Answers that fit: two screens of a terminal, one comment on GitHub."""

from __future__ import annotations

import re

import pytest

from builders import event
from compilescope.record.bodies import StepsProfiled
from compilescope.record.run import Run
from compilescope.report.blocks import (
    Block,
    Branch,
    Diff,
    Document,
    Excerpt,
    Facts,
    Item,
    Paragraph,
    Part,
    Table,
    Tree,
    note,
    words,
)
from compilescope.report.document import report_document
from compilescope.report.explanation import explanation, fitted_explanation
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from compilescope.report.size_limits import fit_bytes, fit_lines
from samples import RUNS, big_run

MOST = 47
REST = "compilescope show --all abc123"
DIFF = "--- a/m.py\n+++ b/m.py\n@@ -1 +1,9 @@\n" + "+    y = x + 1\n" * 9


@pytest.fixture(scope="module")
def big() -> Reading:
    return Reading(big_run(causes=60, graphs=30, events=400))


def measure(document: Document) -> int:
    return to_text(document, width=80).count("\n")


def items(number: int, *inside: Block) -> list[Block]:
    return [Item(str(n), words(f"model.py:{n}"), (), inside) for n in range(1, number + 1)]


def drawn(*blocks: Block, most: int = MOST) -> str:
    first = Part("summary", "", (Paragraph(words("The point.")),))
    document = Document("title", "", (first, Part("x", "Long", tuple(blocks))))
    return to_text(fit_lines(document, most, measure, REST))


def test_what_fits_stays_as_it_is() -> None:
    text = drawn(*items(3))
    assert "more" not in text and REST not in text


@pytest.mark.parametrize(
    "blocks",
    [
        items(200),
        [Table(("a", "b"), tuple((words(str(n)), words("x " * 60)) for n in range(90)))],
        [Facts(tuple((str(n), words("x")) for n in range(300)))],
        [Tree((Branch(words("root"), (), tuple(Branch(words(str(n))) for n in range(99))),))],
    ],
    ids=["items", "rows", "facts", "tree"],
)
def test_lists_lose_their_ends_and_say_so(blocks: list[Block]) -> None:
    text = drawn(*blocks)
    assert len(text.splitlines()) <= MOST
    assert re.search(r"and \d+ more", text) and text.endswith(f"Everything: {REST}\n")
    assert "The point." in text


def test_a_diff_is_whole_or_not_there() -> None:
    for most in range(20, 60):
        text = drawn(*items(4, Diff(DIFF)), most=most)
        assert text.count("+    y = x + 1") % 9 == 0


def cause(diff: Diff) -> Item:
    blocks = (
        Excerpt("        if x.sum() > 0:", 11, 22),
        Paragraph(words("The reason.")),
        Paragraph(words("Use torch.where."), "Try:"),
        diff,
        note("unverified"),
    )
    return Item("1", words("model.py:8"), (), blocks)


def screen(most: int, *parts: str) -> str:
    """Of a cause with a long diff, and other sections."""
    diff = Diff("+    y = x + 1\n" * 20, "compilescope explain --cause 1")
    rows = tuple((words(f"row {n}"),) for n in range(5))
    first = Part("summary", "", (Paragraph(words("The point.")), cause(diff)))
    rest = [Part(id, id.title(), (Table(("a",), rows),)) for id in parts]
    document = Document("title", "", (first, *rest))
    return to_text(fit_lines(document, most, measure, REST))


def test_a_long_diff_is_cut_before_anything_else() -> None:
    most = measure(Document("title", "", ())) + 40
    whole = screen(most, "causes")
    assert whole.count("y = x + 1") == 20 and "whole diff" not in whole
    for less in range(1, 11):
        text = screen(measure_of(whole) - less, "causes")
        assert 8 <= text.count("y = x + 1") < 20
        assert "whole diff: compilescope explain --cause 1" in text
        assert "row 4" in text and "more" not in text and "The reason." in text


def measure_of(text: str) -> int:
    return text.count("\n")


def test_the_line_and_the_reason_outlive_the_diff() -> None:
    for most in range(22, 40, 3):
        text = screen(most, "causes", "step", "other")
        assert "if x.sum() > 0:" in text and "The reason." in text
        if "y = x + 1" in text:
            assert "Not shown" not in text or "Other." in text
        if "Causes" in re.findall(r"Not shown: .*", text + "Not shown: ")[0]:
            assert "y = x + 1" not in text


def test_what_was_asked_for_is_cut_last() -> None:
    named = [
        re.findall(r"Not shown: (.*)\.", screen(n, "step", "causes", "more")) for n in range(60)
    ]
    told = {each[0] for each in named if each}
    assert {"More", "Causes, More"} <= told
    assert not any("Step" in each and "Causes" not in each for each in told)


def test_a_profiled_step_comes_before_where_to_start() -> None:
    run = RUNS["full"]
    steps = event(StepsProfiled(reason="the program ended after 3 calls"), number=99)
    profiled = Run(run.header, [*run.events[:-1], steps, run.events[-1]], run.artifacts)
    text = to_text(report_document(Reading(profiled)))
    assert text.index("A step") < text.index("Start here") < text.index("\nCauses")
    assert text.index("Graph breaks") < text.index("A step")


def test_sections_without_room_are_named() -> None:
    parts = [Part(f"p{n}", f"Part {n}", (Table(("a",), ((words("x"),),) * 9),)) for n in range(30)]
    text = to_text(fit_lines(Document("title", "", tuple(parts)), MOST, measure, REST))
    assert len(text.splitlines()) <= MOST
    assert "Not shown: " in text and "Part 29" in text


def test_a_summary_of_many_causes_fits(big: Reading) -> None:
    fitted = fit_lines(report_document(big), MOST, measure, REST)
    text = to_text(fitted)
    assert len(text.splitlines()) <= MOST and REST in text
    assert re.search(r"^ +1  model\.py:\d+ ", text, flags=re.M)


def test_an_explanation_shows_the_first_causes_and_lists_the_others(big: Reading) -> None:
    one, rest = "compilescope explain --cause", "compilescope explain --all"
    text = to_text(fitted_explanation(big, MOST, measure, one, rest))
    assert len(text.splitlines()) <= MOST
    assert text.count("Why:") >= 1 and "Other causes" in text
    assert re.search(rf"One of them: {one} \d+\nAll in full: {rest}\n$", text)
    assert re.search(r"and \d+ more", text)


def test_an_explanation_that_fits_lists_nothing() -> None:
    reading = Reading(RUNS["ranks"])
    assert fitted_explanation(reading, 100, measure, "", "") == explanation(reading, [1])


@pytest.mark.parametrize("full", [False, True])
def test_markdown_fits_a_comment(big: Reading, full: bool) -> None:
    document = report_document(Reading(big.run, full=full))
    text = fit_bytes(document, 60_000, to_markdown, REST)
    assert len(text.encode()) <= 60_000
    assert text.count("<details>") == text.count("</details>")
    assert len(re.findall(r"^`{3,}", text, flags=re.M)) % 2 == 0
    if full:
        assert "Left out for size: " in text and f"Everything: `{REST}`" in text
        assert text.index("## Graph breaks") < text.index("Left out for size")


def test_small_markdown_is_whole() -> None:
    document = report_document(Reading(RUNS["full"], full=True))
    text = fit_bytes(document, 60_000, to_markdown, REST)
    assert sorted(text.splitlines()) == sorted(to_markdown(document).splitlines())
    assert text.index("## Graph breaks") < text.index("## Timeline")


def test_a_long_text_in_each_row_of_markdown_is_cut_before_it_is_drawn() -> None:
    longest = "a" * 100_000
    rows = tuple(Paragraph(words(longest)) for _ in range(50))
    document = Document("many", "", (Part("rows", "Rows", rows),))
    drawn_letters = 0

    def draw(given: Document) -> str:
        nonlocal drawn_letters
        text = to_markdown(given)
        drawn_letters += len(text)
        return text

    text = fit_bytes(document, 60_000, draw, REST)
    assert len(text) <= 60_000 and "more letters; JSON has them all" in text
    assert drawn_letters < 10 * 60_000
