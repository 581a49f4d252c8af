"""Several runs over each other: their figures, and lines on the same scales, in every format."""

from __future__ import annotations

import re

import msgspec
import pytest

from builders import event, run_of
from compilescope.base.errors import ToolError
from compilescope.record.bodies import CompileTime, MemoryTaken, ProcessEnded, RegionCalls
from compilescope.record.run import Run
from compilescope.report.blocks import Block, Curve, Curves, Document, Part, TrendPoint
from compilescope.report.comparison import ComparedRun
from compilescope.report.overlay import MOST_RUNS, overlay_document
from compilescope.report.render.charts import curves_values
from compilescope.report.render.html import draw, to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import to_text

HOSTILE = '"><script>alert(1)</script>`|*\x1b[31m'
SECOND = 10**9


def run(name: str, step: float, *, steps: bool = True) -> Run:
    told = [
        event(CompileTime(2 * SECOND, memory=MemoryTaken(1 << 30)), time_ns=3 * SECOND),
        event(RegionCalls(0, 16), time_ns=4 * SECOND),
        event(ProcessEnded(memory=MemoryTaken(3 << 30)), time_ns=90 * SECOND),
    ]
    if steps:
        after = event(RegionCalls(0, 32), time_ns=int((4 + 16 * step) * SECOND))
        told.insert(2, after)
    return run_of(*told, ended=False, run=name, command=("train.py",))


def overlaid(*runs: Run) -> Document:
    sides = [ComparedRun(each, each.header.run) for each in runs]
    return overlay_document(sides, lambda name: f"/runs/{name}")


def curve(*values: float, number: int = 0, url: str = "") -> Curve:
    points = tuple(TrendPoint(f"{at} s", value, f"{value} ms") for at, value in enumerate(values))
    return Curve("run", points, tuple(map(float, range(len(values)))), number, url)


def test_figures_and_lines_of_three_runs() -> None:
    document = overlaid(run("a-train", 0.5), run("b-train", 0.25), run("c-train", 1, steps=False))
    told = to_text(document)
    assert "500 ms" in told and "250 ms" in told and "3 GiB" in told
    assert "No line for c-train: the compiled function was called too seldom" in " ".join(
        told.split()
    )
    html = str(draw([block for part in document.parts for block in part.blocks]))
    assert '<a href="/runs/b-train"' in html
    # A run keeps its color where another has no line.
    assert [len(re.findall(f'<polyline class="k{n}"', html)) for n in range(3)] == [3, 3, 2]


def test_runs_of_one_program_are_told_apart_by_their_arguments() -> None:
    runs = [run(name, 0.5) for name in ("a", "b")]
    for each, size in zip(runs, ("32", "512"), strict=True):
        each.header = msgspec.structs.replace(each.header, command=("train.py", "--batch", size))
    told = to_text(overlaid(*runs), width=120)
    assert "train.py --batch 32" in told and "train.py --batch 512" in told


def test_lines_share_both_scales() -> None:
    values = curves_values(Curves("t", (curve(1.0, 4.0), curve(2.0, number=1))))
    assert [each.line for each in values["lines"]] == ["0,75 1000,0", "0,50"]
    assert (values["lowest"], values["highest"], values["latest"]) == ("0", "4.0 ms", "1 s")
    high = curves_values(Curves("t", (curve(9.0, 10.0),)))
    assert (high["lines"][0].line, high["lowest"]) == ("0,100 1000,0", "9.0 ms")


@pytest.mark.parametrize("number", [1, MOST_RUNS + 1])
def test_so_many_runs_cannot_be_told_apart(number: int) -> None:
    with pytest.raises(ToolError, match="Two to 8 runs"):
        overlaid(*(run(f"{n}-train", 1) for n in range(number)))


@pytest.mark.parametrize(
    "values", [(), (0.0,), (float("nan"), float("inf")), (-1.0, 3.0), (1e308, -1e308)]
)
def test_every_format_draws_odd_values(values: tuple[float, ...]) -> None:
    blocks: tuple[Block, ...] = (Curves("Time", (curve(*values), curve(1.0, 2.0, number=9))),)
    drawn = Document("a", "", (Part("p", "P", blocks),))
    for text in (to_text(drawn), to_markdown(drawn), to_html(drawn), to_page([drawn])):
        assert "Time" in text
    assert "nan" not in re.sub(r'(title|aria-label)="[^"]*"', "", str(draw(blocks)))


def test_a_place_that_is_none_is_left_out() -> None:
    points = (TrendPoint("a", 1.0, "1"), TrendPoint("b", 2.0, "2"), TrendPoint("c", 3.0, "3"))
    odd = Curve("run", points, (float("nan"), -1.0))
    assert curves_values(Curves("t", (odd,)))["lines"][0].line == ""


def test_hostile_words_stay_words() -> None:
    point = TrendPoint(HOSTILE, 1.0, HOSTILE)
    odd = Curve(HOSTILE, (point, point), (0.0, 1.0), url="javascript:alert(1)")
    drawn = Document("a", "", (Part("p", "P", (Curves(HOSTILE, (odd,)),)),))
    for text in (to_text(drawn), to_markdown(drawn), to_html(drawn)):
        assert "\x1b" not in text
    html = str(draw(drawn.parts[0].blocks))
    assert "<script>" not in html and "javascript:" not in html
    assert "<script>" not in to_markdown(drawn)
