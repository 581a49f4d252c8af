"""The source view: every line, what it lost, and a page that stays light."""

from __future__ import annotations

import re

import msgspec

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import GraphBreak, SourceSeen
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.blocks import Document, Item, SourceFile
from compilescope.report.document import report_document
from compilescope.report.render.html import draw
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from samples import SOURCE, full_run, hostile_run, with_artifacts


def with_sources(files: dict[str, str], lines: dict[str, list[int]]) -> Run:
    artifacts = MemoryArtifacts()
    events: list[Event] = [
        event(SourceSeen(file, artifacts.put(text, "py"))) for file, text in files.items()
    ]
    for file, numbers in lines.items():
        for line in numbers:
            source = files.get(file, "").splitlines()
            text = source[line - 1] if line <= len(source) else "x"
            at = frame(line, file=file, source=text, column=8, end_column=len(text))
            code = CodeRef(file, 6, "forward")
            events.append(event(GraphBreak("A break", gb_id="GB0170", frame=code), stack=(at,)))
    return with_artifacts(run_of(*events), artifacts)


def document(run: Run) -> Document:
    reading = Reading(run, full=True)
    # Without asking the fixes: they take their time, and the source says nothing of them.
    reading.__dict__["digest"] = digest(run)
    return report_document(reading)


def files_of(drawn: Document) -> list[SourceFile]:
    (part,) = [part for part in drawn.parts if part.id == "source"]
    return [block for block in part.blocks if isinstance(block, SourceFile)]


def only_source(drawn: Document) -> Document:
    parts = tuple(part for part in drawn.parts if part.id == "source")
    return Document("t", "", parts)


MODEL = f"{ROOT}/model.py"


def test_the_whole_file_is_shown_and_its_losses_are_marked() -> None:
    (block,) = files_of(document(with_sources({MODEL: SOURCE}, {MODEL: [8]})))
    assert block.title == "model.py" and block.unfolded
    assert "\n".join(block.stretches[0].lines) == SOURCE.rstrip("\n")
    (line,) = block.marked
    assert (line.line, line.cells[0].column, line.cells[0].text) == (8, "Breaks", "1")
    assert "A break" in line.cells[0].note


def test_a_cause_leads_to_its_line_and_back() -> None:
    drawn = document(with_sources({MODEL: SOURCE}, {MODEL: [8]}))
    (item,) = [
        block
        for part in drawn.parts
        if part.id == "breaks"
        for block in part.blocks
        if isinstance(block, Item)
    ]
    assert item.left[0].target == "line-1-8"
    assert files_of(drawn)[0].marked[0].cells[0].target == item.anchor
    page = to_page([drawn])
    assert 'href="#line-1-8"' in page and 'id="line-1-8"' in page


def test_a_long_file_is_shown_near_its_losses_and_says_so() -> None:
    text = "\n".join(f"x = {n}" for n in range(1, 5001))
    (block,) = files_of(document(with_sources({MODEL: text}, {MODEL: [100, 4000]})))
    assert [part.first_line for part in block.stretches] == [94, 3994]
    assert block.note == "26 of 5000 lines, those near a loss."


def test_without_the_text_the_lines_of_the_stacks_are_shown() -> None:
    for run in (full_run(), with_sources({}, {MODEL: [8]}), hostile_run()):
        for block in files_of(document(run)):
            assert block.stretches and block.marked


def test_a_library_is_folded() -> None:
    library = "/usr/lib/python3/site-packages/lib/layer.py"
    run = with_sources({library: SOURCE, MODEL: SOURCE}, {library: [8, 9], MODEL: [8]})
    assert [(block.title, block.unfolded) for block in files_of(document(run))] == [
        ("model.py", True),
        ("lib/layer.py", False),
    ]


def test_a_terminal_shows_the_lines_near_losses() -> None:
    run = with_sources({MODEL: SOURCE}, {MODEL: [8]})
    text = to_text(only_source(document(run)))
    lines = [line for line in text.splitlines() if "│" in line]
    assert [int(re.findall(r"(\d+) │", line)[0]) for line in lines] == [6, 7, 8, 9, 10]
    assert re.search(r"1 +8 │ +if h\.mean\(\) > 0:", text)
    assert re.search(r"1 +8 │ +if h\.mean\(\) > 0:", to_markdown(only_source(document(run))))


def test_time_has_a_column_and_a_heat_of_its_own() -> None:
    run = with_sources({MODEL: SOURCE}, {MODEL: [7, 8]})
    reading = Reading(run, full=True)
    seen = digest(run)
    costs = zip(seen.sites, ((4.0, None), (1.0, 0.5)), strict=True)
    sites = tuple(msgspec.structs.replace(site, lost_ms=ms, seconds=s) for site, (ms, s) in costs)
    reading.__dict__["digest"] = msgspec.structs.replace(seen, sites=sites)
    (block,) = files_of(report_document(reading))
    assert block.columns == ("Breaks", "Compile time", "Outside graphs")
    found = {(m.line, c.column): (c.text, c.heat) for m in block.marked for c in m.cells}
    assert found[7, "Outside graphs"] == ("4.0 ms", 1.0)
    assert found[8, "Outside graphs"] == ("1.0 ms", 0.25)
    assert found[8, "Compile time"] == ("500 ms", 1.0) and (7, "Compile time") not in found
    assert "5.0 ms outside graphs" in block.summary


def test_many_files_leave_the_page_light() -> None:
    body = "    def forward(self, x):\n        h = self.layer(x, scale=0.5)  # a comment\n"
    text = "import torch\n" + "class Model(torch.nn.Module):\n" + body * 149
    files = {f"{ROOT}/layer{n}.py": text for n in range(40)}
    run = with_sources(files, {file: [10, 150, 290] for file in files})
    blocks = files_of(document(run))
    assert len(blocks) == 40
    assert sum(not block.note for block in blocks) > 5
    assert all("lines, those near a loss." in block.note for block in blocks[-20:])
    assert len(draw(blocks)) < 650_000
