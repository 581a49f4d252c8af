"""The sides of a comparison: eager, a backend, what Dynamo alone makes of it, float64."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from compilescope.diff.trial import Outcome, Plan, run
from compilescope.errors import ToolError
from compilescope.torchapi.trials.backends import (
    CountedBackend,
    compiled_alone,
    eager_random_numbers,
    nothing_compiled,
    root_error,
)
from compilescope.torchapi.trials.survey import Saturation, Survey
from compilescope.torchapi.trials.tape import NotReplayable
from compilescope.torchapi.trials.widening import Widening, wide_dtype

EAGER = "eager"
_READ_CLOSELY = 1e-3


class Side:
    """Something that computes what the model computes."""

    def __init__(
        self, model: Any, backend: str | Callable[..., Any], options: dict[str, Any], *, eager: bool
    ) -> None:
        self.eager = eager
        """Plain Python: torch.compile has no part in it."""
        self.name = backend_name(backend)
        self.backend = None if eager else CountedBackend(backend)
        self._call = (
            model if self.backend is None else compiled_alone(model, self.backend, **options)
        )

    def run(self, plan: Plan, *, seed: int | None = None, nudged: bool = False) -> Outcome:
        return run(plan, self._call, around=self._around, seed=seed, nudged=nudged)

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


def survey(plan: Plan) -> tuple[Outcome, Survey]:
    """An eager run that is watched."""
    watch = Survey()
    return run(plan, plan.model, around=lambda: _eagerly(watch)), watch


def saturated(plan: Plan) -> Outcome:
    """An eager run in which numbers that an integer cannot hold become the nearest that it can."""
    return run(plan, plan.model, around=lambda: _eagerly(Saturation()))


def widened(
    plan: Plan, seen: Survey, *, nudged: bool = False
) -> tuple[Outcome | None, str, list[str]]:
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
