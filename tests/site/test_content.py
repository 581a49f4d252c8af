"""What the pages tell."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

from compilescope.knowledge.registry.cases import load_break_counts, read_examples
from compilescope.knowledge.registry.history import release_of
from compilescope.knowledge.registry.table import normal_id
from compilescope.report.site.build import BuiltSite
from compilescope.report.site.content import SiteSources, gather
from compilescope.report.site.pages import KINDS
from compilescope.report.site.words import note_html, python_lines, sentence


def page(built: BuiltSite, gb_id: str) -> str:
    return (built.folder / "gb" / f"{gb_id.lower()}.html").read_text(encoding="utf-8")


def test_a_page_has_all_that_is_known(built: BuiltSite) -> None:
    text = page(built, "GB0124")
    for words in (
        "Unsupported Tensor.item() call",
        "Dynamo does not support tracing <code>Tensor.item()</code>",
        "capture_scalar_outputs",
        "exist during tracing",
        "What helps",
        "torch 2.8.0",
        "category/scalar-extraction.html",
        "torch/_dynamo/variables/tensor.py:",
        "Additional information",
        "registry/notes",
        "Related",
    ):
        assert words in text, words


def test_the_home_page_begins_with_what_is_met_most_often(built: BuiltSite) -> None:
    text = (built.folder / "index.html").read_text(encoding="utf-8")
    rows = re.findall(r'<li class="row"[^>]*data-id="(GB\d+)"', text)
    met, known = load_break_counts(), [each.gb_id for each in built.content.pages]
    assert sorted(rows) == sorted(known)
    first = [gb_id for gb_id in met.ids if gb_id in known]
    assert rows[: len(first)] == first and rows[0] != "GB0000" and "GB0170" in first
    assert rows[len(first) :] == [gb_id for gb_id in known if gb_id not in first]
    assert f"counted in {met.models} model classes of transformers" in text
    most = met.ids[first[0]]
    assert f"Found in {most.models} of {met.models} model classes" in page(built, first[0])
    assert "Found in" not in page(built, "GB0000")


def test_the_counts_are_of_ids_that_exist(built: BuiltSite) -> None:
    met = load_break_counts()
    assert met.models >= 50 and met.programs >= 100 and len(met.ids) >= 10
    for gb_id, each in met.ids.items():
        assert normal_id(gb_id) == gb_id and built.content.history.since(gb_id)
        assert each.models + each.programs > 0 and len(each.named) <= each.models
    assert list(met.ids) == sorted(met.ids, key=lambda gb_id: (met.rank(gb_id), gb_id))
    feed = json.loads((built.folder / "feed.json").read_text())
    items = {item["id"]: item["_registry"]["met"] for item in feed["items"]}
    assert items["GB0124"] == {
        "models": met.ids["GB0124"].models,
        "programs": met.ids["GB0124"].programs,
    }
    assert items["GB0000"] is None


def test_every_wording_of_an_id_is_there(built: BuiltSite) -> None:
    several = [each for each in built.content.pages if len(each.wordings) > 1]
    assert len(several) > 20
    for each in several:
        text = page(built, each.gb_id)
        for wording in each.wordings:
            assert str(sentence(wording.variant.gb_type)) in text
            if wording.variant.explanation:
                assert str(sentence(wording.variant.explanation)) in text
            for hint in wording.variant.hints:
                assert str(sentence(hint)) in text
        assert text.count('<details class="wording"') == len(each.wordings)


def test_examples_and_outputs_are_shown(built: BuiltSite, tmp_path: Path) -> None:
    for each in built.content.pages:
        if each.example is not None:
            text = page(built, each.gb_id)
            assert text.count('class="here"') == 1, each.gb_id
            assert ("The same without a break" in text) == each.example.has_fixed
            assert ("What compilescope prints" in text) == bool(each.example.output)
    source = (
        '"""It breaks."""\nimport torch\n\n\ndef f(x):\n    return x.item()  # breaks here\n\n\n'
    )
    source += "def inputs():\n    return (torch.ones(1),)\n"
    (tmp_path / "gb0124.py").write_text(source)
    [example] = read_examples(tmp_path).values()
    assert example.output is None


def test_an_id_out_of_reach_says_why(built: BuiltSite) -> None:
    pages = [p for p in built.content.pages if p.example is None and p.unreachable]
    told = {p.gb_id: p.unreachable for p in pages if p.unreachable}
    assert told
    for gb_id, reason in told.items():
        text = page(built, gb_id)
        assert KINDS[reason.kind]["heading"] in text and str(sentence(reason.reason)) in text


def test_versions_tell_what_came_and_went(built: BuiltSite) -> None:
    text = (built.folder / "version" / "2.14.0.html").read_text()
    assert "45 added, 1 removed, 36 reworded" in text and "GB0060" in text
    table = (built.folder / "versions.html").read_text()
    for step in built.content.history.steps:
        assert f"version/{step.torch}.html" in table
    first = built.content.history.steps[0]
    assert (
        "The first torch with a graph-break table"
        in (built.folder / "version" / f"{first.torch}.html").read_text()
    )


def test_a_table_without_a_version_is_recognised_or_left_open(tmp_path: Path) -> None:
    from compilescope.knowledge.registry.table import load_registry

    known = load_registry()
    copy = tmp_path / "copy.json"
    copy.write_bytes(Path(known.path).read_bytes())
    content = gather(SiteSources(copy))
    assert content.table.torch is None and content.release == release_of(version("torch"))
    small = tmp_path / "small.json"
    small.write_text(json.dumps({"GB0001": [{"Gb_type": "One"}], "GB77777": [{"Gb_type": "New"}]}))
    content = gather(SiteSources(small))
    assert content.release is None
    assert content.by_id["GB77777"].since is None and content.by_id["GB0001"].since == "2.8.0"
    assert content.by_id["GB0001"].raised is None  # There is no source to look into.
    assert content.counts["missing"] == 2


def test_the_figures_add_up(built: BuiltSite) -> None:
    counts = built.content.counts
    assert counts["examples"] + counts["unreachable"] + counts["untried"] == counts["total"]
    assert 0 < counts["fixed"] <= counts["examples"]
    text = (built.folder / "dashboard.html").read_text()
    for name in ("total", "examples", "fixed", "missing", "notes"):
        assert f'<span class="number">{counts[name]}</span>' in text
    assert text.count("<svg") == 3


def test_related_ids_are_near(built: BuiltSite) -> None:
    related = {other.gb_id for other in built.content.by_id["GB0170"].related}
    assert "GB0035" in related and "GB0170" not in related
    for each in built.content.pages:
        assert len(each.related) <= 6
        assert each.entry not in each.related


def test_sentences() -> None:
    assert str(sentence("Use `x < y` and <value>.")) == (
        "Use <code>x &lt; y</code> and <var>&lt;value&gt;</var>."
    )
    link = str(sentence("See https://docs.pytorch.org/a/b.html."))
    assert '<a href="https://docs.pytorch.org/a/b.html" rel="noopener">' in link
    assert "<a" not in str(
        sentence("See https://evil.example/x and https://pytorch.org.evil/"[:30])
    )
    assert "<a" not in str(sentence("https://evilpytorch.org/"))


def test_code_keeps_every_line() -> None:
    source = 'def f(x):\n    """A\n    text."""\n\n    return x  # <here>\n'
    drawn = str(python_lines(source, marked=5))
    assert drawn.count("data-line") == 5 and '<span class="here" data-line="5">' in drawn
    assert "&lt;here&gt;" in drawn
    assert str(python_lines("not (python at all\n\tx")).count("data-line") == 2


def test_notes_are_markdown_without_html() -> None:
    drawn = str(
        note_html(
            "# Top\n\ntext **bold** <b>not</b>\n\n## Sub\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
        )
    )
    assert "<h3>Top</h3>" in drawn and "<h4>Sub</h4>" in drawn
    assert "<strong>bold</strong>" in drawn and "&lt;b&gt;" in drawn and "<table>" in drawn
