"""What compiling in other pieces may round otherwise, and what is another number."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from compilescope.change.repair.trials.child.kept_outcomes import KeptOutcome
from compilescope.change.repair.trials.replays import Judge, Replays
from compilescope.measure.diff.runs.trial import TrialOutcome, TrialValue

pytestmark = pytest.mark.torch


class Kept:
    """One replay, without a folder."""

    def __init__(self, **leaves: object) -> None:
        values = {name: TrialValue("output", leaf) for name, leaf in leaves.items()}
        self._kept = KeptOutcome(TrialOutcome(values=values), {})

    def read(self, replay: object) -> KeptOutcome:
        return self._kept


def side(**leaves: object) -> tuple[Replays, Any]:
    return cast(Replays, Kept(**leaves)), {}


@pytest.mark.parametrize(
    ("moved", "rounding"), [(1e-7, True), (5e-6, True), (1e-4, False), (1e-2, False)]
)
def test_as_far_as_rounding_goes(moved: float, rounding: bool) -> None:
    wanted = torch.linspace(1, 2, 100)
    found = wanted * (1 + moved)
    judge = Judge(frozenset())
    assert judge.is_rounding("x", side(x=wanted), side(x=found), None) is rounding


@pytest.mark.parametrize(("times", "rounding"), [(3.0, True), (20.0, False)])
def test_where_eager_mode_has_no_right_digit_either(times: float, rounding: bool) -> None:
    exact = torch.zeros(100, dtype=torch.float64)
    noise = torch.linspace(-1e-7, 1e-7, 100)
    judge = Judge(frozenset())
    given = side(x=noise), side(x=-times * noise), side(x=exact)
    assert judge.is_rounding("x", *given) is rounding


def test_infinities_are_no_rounding() -> None:
    wanted, found = torch.ones(2), torch.tensor([1.0, torch.inf])
    assert not Judge(frozenset()).is_rounding("x", side(x=wanted), side(x=found), None)


def test_all_bits_agree_or_they_do_not() -> None:
    judge, one = Judge(frozenset()), torch.ones(2)
    assert judge.agree(side(x=one, n=3), side(x=one.clone(), n=3))
    assert not judge.agree(side(x=one), side(x=one * (1 + 2e-7)))
    assert not judge.agree(side(x=one), side(x=one, y=one))
