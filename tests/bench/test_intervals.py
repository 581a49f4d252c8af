"""The figures of repeated runs: what they are, and what they are when there is little to go by."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys

import pytest

from compilescope.knowledge.analysis.intervals import ratio, summarize

ROW = [10.0, 11.0, 9.5, 10.2, 10.4, 9.9, 10.1, 10.3, 9.8, 30.0]


def test_figures_of_one_process() -> None:
    found = summarize([ROW])
    assert found is not None and found.ci is not None and found.std is not None
    assert found.median == pytest.approx(10.15)
    assert found.mean == pytest.approx(sum(ROW) / 10)
    assert found.std == pytest.approx(statistics.stdev(ROW))
    assert found.p90 == pytest.approx(12.9)
    assert found.outliers == 1
    # Order statistics 2 and 9 of 10: they hold the median with 97.9 %.
    assert found.ci == pytest.approx((9.8, 11.0))


def test_an_interval_holds_what_processes_differ_in() -> None:
    quick, slow = [10.0 + n / 100 for n in range(10)], [12.0 + n / 100 for n in range(10)]
    alone, both = summarize([quick]), summarize([quick, slow])
    assert alone is not None and alone.ci is not None and alone.ci[1] < 10.1
    assert both is not None and both.ci is not None
    assert both.ci[0] < 10.05 and both.ci[1] > 12.05
    assert both.outliers == 0
    # Three processes say how much processes differ: the interval reaches beyond what was seen.
    three = summarize([quick, slow, [11.0 + n / 100 for n in range(10)]])
    assert three is not None and three.ci is not None
    assert three.ci[0] < 9.0 and three.ci[1] > 13.0


@pytest.mark.parametrize("paired", [True, False])
def test_ratio_says_how_many_times_faster(paired: bool) -> None:
    found = ratio([ROW], [[value / 2 for value in ROW]], paired=paired)
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(2.0)
    assert found.low <= 2.0 <= found.high
    assert found.low > 1.5


def test_a_pair_cancels_what_slows_both_down() -> None:
    noise = [1.0, 2.0, 1.1, 3.0, 1.0, 1.4, 5.0, 1.2, 1.0, 1.3]
    base, other = [[10 * factor for factor in noise]], [[5 * factor for factor in noise]]
    paired, free = ratio(base, other, paired=True), ratio(base, other, paired=False)
    assert paired is not None and (paired.low, paired.high) == pytest.approx((2.0, 2.0))
    assert free is not None and free.low is not None and free.low < 1.9


@pytest.mark.parametrize("paired", [True, False])
def test_the_same_runs_give_the_same_interval(paired: bool) -> None:
    other = [value * 1.1 for value in reversed(ROW)]
    assert ratio([ROW], [other], paired=paired) == ratio([ROW], [other], paired=paired)


@pytest.mark.parametrize("rows", [[], [[]], [[], []], [[math.nan]], [[0.0, -1.0, math.inf]]])
def test_nothing_measured_has_no_figures(rows: list[list[float]]) -> None:
    assert summarize(rows) is None
    assert ratio(rows, [ROW], paired=True) is None
    assert ratio([ROW], rows, paired=False) is None


@pytest.mark.parametrize("runs", [[5.0], [5.0, 6.0], [5.0, math.nan], [math.nan, 5.0, 6.0]])
def test_too_few_runs_have_no_interval(runs: list[float]) -> None:
    found = summarize([runs])
    assert found is not None and found.ci is None
    for paired in (True, False):
        quotient = ratio([runs], [runs], paired=paired)
        assert quotient is not None and quotient.value == 1.0
        assert quotient.low is None and quotient.high is None


def test_one_run_has_no_deviation() -> None:
    found = summarize([[5.0]])
    assert found is not None
    assert (found.median, found.mean, found.p90, found.std) == (5.0, 5.0, 5.0, None)


@pytest.mark.parametrize("size", [3, 5, 6, 30])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_runs_that_do_not_vary(size: int, rows: int) -> None:
    same = [[5.0] * size] * rows
    found = summarize(same)
    assert found is not None and found.ci == pytest.approx((5.0, 5.0)) and found.outliers == 0
    for paired in (True, False):
        quotient = ratio(same, same, paired=paired)
        assert quotient is not None and (quotient.low, quotient.high) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize("paired", [True, False])
def test_rows_of_different_lengths(paired: bool) -> None:
    found = ratio([ROW, ROW[:4]], [ROW[:7], [], ROW], paired=paired)
    assert found is not None and found.low is not None and found.high is not None
    assert found.low <= found.value <= found.high


def test_numpy_is_asked_for_by_name_where_it_is_missing() -> None:
    code = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "from compilescope.base.errors import ToolError\n"
        "from compilescope.knowledge.analysis.intervals import summarize\n"
        "try:\n    summarize([[1.0]])\n"
        "except ToolError as error:\n    print(error.message, error.hint)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "need NumPy" in said.stdout and "compilescope[bench]" in said.stdout
