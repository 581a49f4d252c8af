"""An expression of several lines is marked from its begin to its end, in every format."""

from __future__ import annotations

import json

from browsing import uncoloured
from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.gate.verdict import NOTHING_LOST, judge
from compilescope.record.bodies import GraphBreak, GraphCaptured, SourceSeen
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.blocks import Document, Part
from compilescope.report.document import report_document
from compilescope.report.finding import finding_item
from compilescope.report.render.annotations import to_annotations
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.sarif import to_sarif
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

FILE = f"{ROOT}/model.py"
CODE = CodeRef(FILE, 1, "f")
TEXT = """def f(x):
    y = torch.log(
        x,
    )
    if torch.isnan(y):
        log.warning("nan")
    return y
"""


def broken(line: int, column: int, end: int) -> Run:
    """A break at `line`, with the columns that torch gives."""
    run = run_of()
    source = TEXT.splitlines()[line - 1]
    at = frame(line, file=FILE, function="f", source=source, column=column, end_column=end)
    events = [
        event(SourceSeen(FILE, run.artifacts.put(TEXT, "py")), number=1),
        event(GraphCaptured(stage="dynamo", ops=1, frame=CODE, region=CODE), number=2),
        event(GraphBreak("Odd thing", gb_id="GB0001", frame=CODE), number=3, stack=(at,)),
    ]
    return Run(run.header, [*run.events, *events], run.artifacts)


CALL = broken(2, 8, 5)
BRANCH = broken(5, 4, 26)


def document(run: Run, *, full: bool = True) -> Document:
    return report_document(Reading(run, full=full))


def region(run: Run) -> dict[str, int]:
    [result] = json.loads(to_sarif([document(run)]))["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    # A context must hold the whole region: one line cannot hold several.
    assert ("contextRegion" in physical) == (physical["region"]["endLine"] == 5)
    return dict(physical["region"])


def lines_after(text: str, mark: str, number: int) -> list[str]:
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if mark in line)
    return [line.rstrip() for line in lines[first : first + number]]


def test_the_terminal_underlines_each_line() -> None:
    shown = lines_after(to_text(document(CALL)), "> 2 │", 6)
    for line, carets, part in zip(shown[::2], shown[1::2], ("torch.log(", "x,", ")"), strict=True):
        assert carets == " " * line.index(part) + "^" * len(part)


def test_a_brief_item_underlines_the_first_line() -> None:
    for run, line, part in (
        (CALL, "y = torch.log(", "torch.log("),
        (BRANCH, "if torch.isnan(y):", "torch.isnan(y)"),
    ):
        item = finding_item(1, Reading(run).causes[0], ROOT)
        drawn = Document("", "", (Part("causes", "", (item,)),))
        assert lines_after(to_text(drawn), line, 2)[1].strip() == "^" * len(part)


def test_markdown() -> None:
    text = to_markdown(document(CALL))
    assert "    y = torch.log(\n        ^^^^^^^^^^\n        x,\n        ^^\n    )\n    ^\n" in text
    assert f"    if torch.isnan(y):\n       {'^' * 14}\n" in to_markdown(document(BRANCH))


def test_html() -> None:
    page = uncoloured(to_page([document(CALL)]))
    for part in ("<mark>torch.log(</mark>", "<mark>x,</mark>", "<mark>)</mark>"):
        assert part in page
    assert "if <mark>torch.isnan(y)</mark>:" in uncoloured(to_page([document(BRANCH)]))


def test_sarif_ends_on_the_last_line() -> None:
    call = {"startLine": 2, "startColumn": 9, "endLine": 4, "endColumn": 6}
    assert region(CALL) == call
    branch = {"startLine": 5, "startColumn": 8, "endLine": 5, "endColumn": 22}
    assert region(BRANCH) == branch


def test_annotations_of_several_lines_have_no_columns() -> None:
    """GitHub takes columns within one line only."""
    several = to_annotations(judge(digest(CALL), NOTHING_LOST), ROOT)
    assert "line=2,endLine=4::" in several and "col=" not in several
    one = to_annotations(judge(digest(BRANCH), NOTHING_LOST), ROOT)
    assert "line=5,endLine=5,col=8,endColumn=21::" in one
