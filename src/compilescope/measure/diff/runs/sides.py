"""The sides of a comparison: eager, a backend, Dynamo alone, float64; and is the last believed?

A run in float64 may take another branch somewhere. A result of it that is far from the reference's
is only believed where the reference itself answers to the smallest change of its inputs with as
large a change: then all is rounding.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.trials.backends import (
    Compile,
    CountedBackend,
    compiled_alone,
    eager_random_numbers,
    nothing_compiled,
    root_error,
)
from compilescope.instrument.torchapi.trials.reruns import (
    NotReplayable,
    Saturation,
    Survey,
    Widening,
    wide_dtype,
)
from compilescope.measure.diff.runs.trial import TrialOutcome, TrialPlan, run
from compilescope.measure.tensors.tolerances import relative_distance

EAGER = "eager"
_READ_CLOSELY = 1e-3
"""A unit of float16 (9.8e-4), relative: numbers that Python reads off tensors and that are this
near lead to the same branch, but for a rare threshold between them."""


class ComparedSide:
    """Something that computes what the model computes."""

    def __init__(
        self,
        model: Any,
        backend: str | Callable[..., Any],
        options: dict[str, Any],
        *,
        eager: bool,
        before: Callable[[], Any] | None = None,
    ) -> None:
        """`before` each call of the backend, what it gives is kept."""
        self.eager = eager
        """Plain Python: torch.compile has no part in it."""
        self.name = backend_name(backend)
        self.backend = None if eager else CountedBackend(backend, before)
        self._call = (
            model if self.backend is None else compiled_alone(model, self.backend, **options)
        )

    def run(
        self, plan: TrialPlan, *, seed: int | None = None, nudged: bool = False
    ) -> TrialOutcome:
        return run(plan, self._call, around=self._around, seed=seed, nudged=nudged)

    @property
    def compiles(self) -> list[Compile]:
        """All so far."""
        return self.backend.compiles if self.backend is not None else []

    @contextlib.contextmanager
    def _around(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self.backend is None:
                stack.enter_context(nothing_compiled())
            elif self.backend.inductor:
                stack.enter_context(eager_random_numbers())
            yield


def backend_name(backend: str | Callable[..., Any]) -> str:
    if isinstance(backend, str):
        return backend
    return str(getattr(backend, "__name__", None) or type(backend).__name__)


def survey(plan: TrialPlan) -> tuple[TrialOutcome, Survey]:
    """An eager run that is watched."""
    watch = Survey()
    return run(plan, plan.model, around=lambda: _eagerly(watch)), watch


def saturated(plan: TrialPlan) -> TrialOutcome:
    """An eager run in which numbers that an integer cannot hold become the nearest that it can."""
    return run(plan, plan.model, around=lambda: _eagerly(Saturation()))


def widened(
    plan: TrialPlan, seen: Survey, *, nudged: bool = False
) -> tuple[TrialOutcome | None, str, list[str]]:
    """An eager run in float64; None with the reason where there is none. And notes."""
    mode = Widening(seen.tape)
    try:
        plan.state.restore()
        with plan.state.widened():
            outcome = run(
                plan,
                plan.model,
                around=lambda: _eagerly(_default_dtype(), mode),
                dtypes=wide_dtype,
                nudged=nudged,
            )
    except ToolError as error:
        return None, error.message, []
    except RuntimeError as error:
        return None, _words(error), []
    if isinstance(outcome.error, NotReplayable):
        return None, str(outcome.error), []
    if outcome.error is not None:
        return None, f"the model does not run in float64: {_words(outcome.error)}", []
    if not _read_alike(seen.scalars, mode.scalars):
        return (
            None,
            "in float64 the program reads different numbers and may take different branches",
            [],
        )
    notes = [
        f"{op} does not support float64, so it ran in float32 in the float64 run ({why})"
        for op, why in mode.narrow.items()
    ]
    return outcome, "", notes


@contextlib.contextmanager
def _eagerly(*contexts: contextlib.AbstractContextManager[Any]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(nothing_compiled())
        for context in contexts:
            stack.enter_context(context)
        yield


@contextlib.contextmanager
def _default_dtype() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _read_alike(one: list[Any], other: list[Any]) -> bool:
    """Are these the same numbers, up to rounding?"""
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if isinstance(a, float) and isinstance(b, float):
            both_nan = math.isnan(a) and math.isnan(b)
            if not both_nan and not math.isclose(a, b, rel_tol=_READ_CLOSELY, abs_tol=1e-5):
                return False
        elif a != b:
            return False
    return True


def _words(error: BaseException) -> str:
    inner = root_error(error)
    said = " ".join(str(inner).split())[:300]
    return f"{type(inner).__name__}: {said}" if said else type(inner).__name__


_FAR = 32.0
"""Times the square root of the unit in the last place: more than half of the digits are lost. Of
the operations in benchmarks/rounding_limits.py only plain cancellation gets there; the median is at
1e-5 of it in float32, at 5e-3 in 16 bits."""
_FARTHEST = 0.3
"""For dtypes so narrow that the square root says nothing: times 32 it is 1 in float16 and 2.8 in
bfloat16. Chosen: about a third of the numbers themselves."""
_WIDE_GROWTH, _NARROW_GROWTH = 100.0, 30.0
"""Times the answer to the smallest change: the rounding errors of all operations together. Measured
up to 2.8 for single operations and short chains (benchmarks/rounding_limits.py); a model is longer,
and a narrow unit hides more."""


def believed(
    reference: TrialOutcome, exact: TrialOutcome, nudged: Callable[[], TrialOutcome]
) -> tuple[TrialOutcome, list[str]]:
    """The float64 run without the values that are not believed, and their paths."""
    doubted: list[str] = []
    other: TrialOutcome | None = None
    for path, value in reference.values.items():
        known = exact.values.get(path)
        apart = relative_distance(value.leaf, known.leaf) if known is not None else None
        if apart is None or apart <= _limit(value.leaf.dtype):
            continue
        other = other or nudged()
        answer = other.values.get(path)
        moved = relative_distance(value.leaf, answer.leaf) if answer is not None else None
        wide = torch.finfo(value.leaf.dtype).eps < 1e-4
        growth = _WIDE_GROWTH if wide else _NARROW_GROWTH
        if moved is None or apart > growth * moved:
            doubted.append(path)
    kept = {path: value for path, value in exact.values.items() if path not in doubted}
    return replace(exact, values=kept), doubted


def _limit(dtype: torch.dtype) -> float:
    return min(_FARTHEST, _FAR * math.sqrt(torch.finfo(dtype).eps))
