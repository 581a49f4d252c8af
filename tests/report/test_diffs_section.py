"""What the report says of numbers."""

from __future__ import annotations

from builders import event, frame, run_of
from compilescope.record.bodies import TensorDiff
from compilescope.record.outcomes import ErrorGrid, ErrorProfile, WorstValue
from compilescope.report.blocks import Fold, Heatmap, Item, Table
from compilescope.report.document import report_document
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from compilescope.report.sections.diffs import SECTION

GRID = ErrorGrid(("0180", "0900"), 1e-6, 0.5, 2, 4, ((-6, 1), (-1, 1)), zeros=5)
WRONG = TensorDiff(
    "output['h']",
    "fail",
    "too far",
    "toy",
    test="inductor",
    metrics={"max_abs": 0.5, "mean_abs": 0.1, "max_ulp": 3, "mismatched": 2, "cosine": 0.9},
    guilty="aten.gelu (gelu_3)",
    shape=(2, 4),
    dtype="float32",
    worst=(WorstValue((1, 1), "2", "nan", "inf"),),
    errors=GRID,
    profiles=(ErrorProfile(1, 4, ((1, 1, 0.5, 2),), 1), ErrorProfile(0, 2, ((0, 1, 0.5, 1),), 2)),
)
RIGHT = TensorDiff("output[1]", "pass", "equal", metrics={"max_abs": 0.0}, shape=(2,))
DOUBT = TensorDiff("grad of w", "unknown", "random", role="gradient")


def reading(*bodies: TensorDiff) -> Reading:
    events = (event(body, number=n, stack=(frame(line=7),)) for n, body in enumerate(bodies))
    return Reading(run_of(*events), full=True)


def test_what_differs_comes_first_and_what_agrees_is_folded() -> None:
    blocks = SECTION.build(reading(RIGHT, DOUBT, WRONG))
    items = [block for block in blocks if isinstance(block, Item)]
    assert [item.left[-1].text for item in items] == ["output['h']", "grad of w"]
    fold = blocks[-1]
    assert isinstance(fold, Fold) and isinstance(fold.blocks[0], Table)


def test_every_format_tells_it() -> None:
    document = report_document(reading(WRONG))
    for text in (to_text(document), to_markdown(document), to_html(document)):
        plain = text.replace("\\", "").replace("&#x27;", "'")
        for told in ("output['h']", "gelu_3", "0.5", "nan", "along dimension 1"):
            assert told in plain, told
        # Errors that lie all over say nothing of a dimension.
        assert "along dimension 0" not in plain
    assert "| .% |" in to_text(document) and "| !  |" in to_text(document)
    assert 'class="l9"' in to_html(document)


def test_a_grid_from_a_hostile_record_draws_only_digits() -> None:
    drawn = Heatmap(("<x", "8" * 1000), "1", "<b>", "odd")
    bad = ErrorGrid(drawn.lines, 1.0, 2.0, 2, 2)
    body = TensorDiff("x", "fail", errors=bad, shape=(2, 2))
    page = to_html(report_document(reading(body)))
    assert "<x" not in page and len(page) < 100_000


def test_no_section_without_comparisons() -> None:
    assert SECTION.build(Reading(run_of())) == []
