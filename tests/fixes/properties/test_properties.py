"""Every source fix on inputs that its author did not think of: eagerly, before and after.

What a fix proposes having seen some inputs has to do the same on them, and on others of the same
dtypes and sizes: values, dtypes, gradients, what it writes and prints, and that it raises.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from capabilities import expected
from compilescope.change.fixes.catalogue import all_fixes
from fixes.properties.cases import CASES, LEFT_OUT
from fixes.properties.inputs import DrawnTensor, TensorKind, drawn, drawn_as
from fixes.properties.outcomes import difference, outcome_of
from fixes.properties.proposed import Case, Proposals

pytestmark = pytest.mark.torch
PROPOSALS = Proposals()
QUICK, LONG = 6, 15
"""Draws for each program, in the default tests and in the slow ones. Chosen: numbers cost little,
but for each new kind of inputs the program is compiled and the fix asked again."""
QUIETLY = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],  # To shrink a failure would ask the fix hundreds of times.
    suppress_health_check=list(HealthCheck),
)


def test_no_source_fix_is_forgotten() -> None:
    sources = {fix.id for fix in all_fixes() if fix.kind == "source"}
    covered = {case.fix for case in CASES}
    assert sources - covered == set(LEFT_OUT)
    assert all(LEFT_OUT.values())


ONE_OF_EACH_FIX = [
    pytest.param(
        case, marks=pytest.mark.slow if case.fix in {one.fix for one in CASES[:number]} else ()
    )
    for number, case in enumerate(CASES)
]


@pytest.mark.parametrize("case", ONE_OF_EACH_FIX, ids=lambda case: case.fix)
def test_other_numbers(case: Case) -> None:
    kinds = tuple(_plain(name) for name in case.takes)
    # Where this torch loses nothing here any more, there is nothing to fix. A program of the case's
    # own is a larger form of the fix's first example.
    number = case.program if isinstance(case.program, int) else 0
    there = expected(f"example/fix/{case.fix}/{number}")

    @settings(QUIETLY, max_examples=(case.draws or QUICK) if there else 1, derandomize=True)
    @given(drawn_as(kinds))
    def holds(inputs: tuple[DrawnTensor, ...]) -> None:
        # Where the example comes out otherwise in this torch, what comes out has to hold too.
        assert _check(case, inputs, surveyed=True) or not there

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fix)
def test_other_kinds_of_inputs(case: Case) -> None:
    @settings(QUIETLY, max_examples=case.draws or LONG)
    @given(drawn(case.takes), st.booleans())
    def holds(inputs: tuple[DrawnTensor, ...], surveyed: bool) -> None:
        _check(case, inputs, surveyed=surveyed)

    holds()


def _check(case: Case, inputs: tuple[DrawnTensor, ...], *, surveyed: bool) -> bool:
    """Does the fix propose anything? Then it does the same."""
    found = PROPOSALS.of(case, inputs, surveyed=surveyed)
    if found is None:
        return False
    # Only where it must be: `torch.cond` compiles its branches, or has no gradient.
    eager = torch.compiler.set_stance("force_eager") if case.is_decorated else nullcontext()
    with eager:
        old = outcome_of(found.before, [each.made() for each in inputs])
        new = outcome_of(found.after, [each.made() for each in inputs])
    allows = found.patch.allows
    finite = all(bool(each.made().isfinite().all()) for each in inputs)
    words = difference(
        old,
        new,
        other_errors="exception-type" in allows,
        other_output=bool(allows & {"drops-output", "moves-output"}),
        other_gradients=_is_said(found.patch.states, finite),
        zero_gradients="gets a gradient of zeros" in found.patch.states,
        more_graded="the result requires a gradient" in found.patch.states,
    )
    shown = [each.made() for each in inputs]
    assert not words, f"{case.fix} on {shown}: {words}\n\n{found.text}"
    return True


def _is_said(states: str, finite: bool) -> bool:
    """Does the fix itself say that a gradient may be NaN on such inputs?"""
    if "a gradient may be NaN" not in states:
        return False
    return not finite or "derivative of a turn" in states


def _plain(name: str) -> TensorKind:
    """What an author thinks of, but for the gradient."""
    role, _, of = name.rpartition(":")
    dtype = {"bool": "bool", "index": "int64"}.get(of, "float32")
    shape = {"one": (), "vector": (2,)}.get(role, (3, 3))
    return TensorKind(dtype, shape, "plain", grad=dtype == "float32" and role != "still")
