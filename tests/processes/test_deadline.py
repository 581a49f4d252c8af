"""The arithmetic of a time limit: what a stage may take, and what is kept back."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import pytest

from compilescope.base.processes import deadline as module
from compilescope.base.processes.deadline import Deadline, OutOfTime, closing_s


def test_without_a_limit_nothing_is_ever_over() -> None:
    deadline = Deadline()
    assert deadline.until == math.inf and not deadline.is_over
    with deadline.leaving(lambda: 1e9):
        assert deadline.limit(60.0) == 60.0 and not deadline.is_over


@pytest.mark.parametrize("seconds", [0.5, 20.0, 60.0, 120.0, 3600.0])
def test_a_part_is_kept_for_the_end(seconds: float) -> None:
    deadline = Deadline(seconds, begun=1000.0)
    assert deadline.until == pytest.approx(1000.0 + seconds - closing_s(seconds))
    assert 0 < closing_s(seconds) <= max(0.05 * seconds, 0.5 * seconds if seconds < 10 else 0)


def test_what_is_over_raises() -> None:
    deadline = Deadline(10.0, begun=time.monotonic() - 11)
    assert deadline.is_over and deadline.left_s < 0
    with pytest.raises(OutOfTime):
        deadline.limit(5.0)


def test_a_limit_of_its_own_counts_where_it_is_shorter() -> None:
    deadline = Deadline(1000.0)
    assert deadline.limit(5.0) == 5.0
    assert deadline.limit(5000.0) < 1000.0


def test_a_stage_leaves_what_is_asked_for_now() -> None:
    deadline = Deadline(1000.0)
    end, reserve = deadline.until, [100.0]
    with deadline.leaving(lambda: reserve[0]):
        assert deadline.until == pytest.approx(end - 100.0)
        reserve[0] = 30.0  # The program got smaller: its check gets cheaper.
        assert deadline.until == pytest.approx(end - 30.0)
    assert deadline.until == end


def test_a_stage_has_half_of_what_is_left_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 5000.0))
    deadline = Deadline(1000.0)
    whole = deadline.left_s
    with deadline.leaving(lambda: 1e6):
        assert deadline.left_s == pytest.approx(whole / 2)
