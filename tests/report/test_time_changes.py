"""What recorded times of two versions say of each other."""

from __future__ import annotations

import pytest

from compilescope.record.fix_search import Spread
from compilescope.report.time_changes import time_change

STEADY = Spread(0.010, 0.009, 0.011, 3)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (Spread(0.020, 0.019, 0.021, 3), "100% slower"),
        (Spread(0.005, 0.004, 0.006, 3), "50% faster"),
        (Spread(0.011, 0.010, 0.012, 3), "no clear difference"),
        (Spread(0.0101, 0.01101, 0.0111, 3), "no clear difference"),
        (Spread(0.012, 0.004, 0.090, 3), "too noisy to tell"),
        (Spread(0.020, 0.019, 0.021, 2), ""),
        (None, ""),
    ],
)
def test_a_difference_is_told_where_the_rounds_say_so(after: Spread | None, told: str) -> None:
    assert time_change(STEADY, after)[0] == told


def test_nothing_is_told_of_no_time() -> None:
    assert time_change(Spread(0.0, 0.0, 0.0, 3), STEADY) == ("", "plain")
