"""Pages are drawn by templates that were written as Python: the same characters as by Jinja."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compilescope.report.blocks import (
    Block,
    Curve,
    Curves,
    Heatmap,
    Matrix,
    Measures,
    Quote,
    Roofline,
    RooflineDot,
    Trend,
    TrendPoint,
)
from compilescope.report.document import report_document
from compilescope.report.render import html
from compilescope.report.render.page import to_page
from compilescope.report.section import Reading
from samples import HOSTILE, RUNS
from write_templates import TARGET, by_jinja, modules, names

POINTS = tuple(TrendPoint(f"day {n} {HOSTILE}", n, f"{n} ms", 0.5, 9.0, "/x") for n in (1.0, 2.0))
BLOCKS: tuple[Block, ...] = (
    Curves(HOSTILE, (Curve(HOSTILE, POINTS, (0.0, 1.0), 9, "/x"), Curve("none", (), ()))),
    Heatmap(("<x", "0189"), "1", HOSTILE, "odd"),
    Matrix(HOSTILE, (("a", HOSTILE), ("b", "")), ((HOSTILE, (0, 3)), ("m", (1, 0))), ("/x", "")),
    Measures(HOSTILE, ((HOSTILE, 1.0, "1 ms"), ("b", 2.0, "2 ms")), ((0.5, 1.5), None)),
    Measures("", (("a", 1.0, "1 ms"), ("b", 2.0, "2 ms")), idle_from=1),
    Quote(HOSTILE, HOSTILE),
    Roofline(HOSTILE, 1e12, ((HOSTILE, 1e13),), (RooflineDot(HOSTILE, HOSTILE, 2.0, 1e11, 0.5),)),
    Trend(HOSTILE, POINTS),
    Trend("", POINTS, compact=True),
)


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], str]], set[str]]:
    """Draws twice, compares, and says which templates were drawn."""

    def draw(make: Callable[[], str]) -> set[str]:
        drawn: set[str] = set()
        written = html._drawing

        def noted(name: str) -> Callable[[dict[str, Any]], str]:
            drawn.add(name)
            return written(name)

        with monkeypatch.context() as patch:
            patch.setattr(html, "_drawing", noted)
            ours = make()
            patch.setattr(html, "_drawing", by_jinja)
            assert make() == ours
        return drawn

    return draw


def test_the_code_is_that_of_the_templates() -> None:
    for file, text in modules().items():
        assert (TARGET / file).read_text() == text, "Run python tools/write_templates.py"


def test_both_print_the_same(both: Callable[[Callable[[], str]], set[str]]) -> None:
    drawn: set[str] = set()
    for run in RUNS.values():
        document = report_document(Reading(run, full=True, page=True))
        drawn |= both(lambda made=document: to_page([made]))  # type: ignore[misc]
        drawn |= both(lambda made=document: html.to_html(made))  # type: ignore[misc]
    drawn |= both(lambda: html.to_fragment(BLOCKS))
    assert drawn == set(names())
