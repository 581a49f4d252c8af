"""Compares the values of two runs one by one: tensors, numbers, strings, and what is missing."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from compilescope.measure.diff.runs.trial import TrialOutcome, ValueKind
from compilescope.measure.tensors.comparison import TensorComparison, compare_tensors
from compilescope.measure.tensors.structure import MISSING, Lazy, Opaque
from compilescope.measure.tensors.tolerances import ComparisonConfig
from compilescope.record.body import Verdict

Before = Callable[[str], Any]


@dataclass(frozen=True)
class ValueDiff:
    """One value of the reference held against the same of the test."""

    path: str
    kind: ValueKind
    verdict: Verdict
    reason: str
    numbers: TensorComparison | None = None
    """None for what has no numbers."""
    sides: tuple[Any, Any] | None = None
    """The values themselves, where they are kept for pictures."""
    input: int = 1
    """The set of inputs."""

    @property
    def metrics(self) -> dict[str, float]:
        return self.numbers.metrics if self.numbers is not None else {}

    def judged(self, verdict: Verdict, reason: str) -> ValueDiff:
        return replace(self, verdict=verdict, reason=reason)


class Comparer:
    """Holds outcomes of one plan against each other."""

    def __init__(
        self,
        config: ComparisonConfig,
        before: Before,
        narrowest: torch.dtype,
        *,
        keep: bool = False,
    ) -> None:
        self._config = config
        self._before = before
        self._narrowest = narrowest
        """The least precise numbers of the model: plain floats were read off tensors of it."""
        self._keep = keep

    def is_given(self, dtype: torch.dtype) -> bool:
        """Did the user say how near is near enough?"""
        return self._config.is_given(dtype)

    def compare(
        self, reference: TrialOutcome, test: TrialOutcome, exact: TrialOutcome | None = None
    ) -> list[ValueDiff]:
        found = list(_unlike_containers(reference, test))
        paths = list(reference.values)
        # A value that only the test has comes where it belongs: with its kind.
        paths += [path for path in test.values if path not in reference.values]
        for path in paths:
            known = reference.values.get(path) or test.values[path]
            one, other = self._leaf(reference, path), self._leaf(test, path)
            truth = exact.values.get(path) if exact is not None else None
            found.append(
                self.compare_leaves(path, known.kind, one, other, truth.leaf if truth else None)
            )
        return found

    def _leaf(self, outcome: TrialOutcome, path: str) -> Any:
        value = outcome.values.get(path)
        if value is not None:
            return value.leaf
        # What one side wrote into and the other did not is still there, as it was.
        return self._before(path) if path.endswith(" after the call") else MISSING

    def compare_leaves(
        self, path: str, kind: ValueKind, one: Any, other: Any, exact: Any = None
    ) -> ValueDiff:
        reason = _presence(one, other)
        if reason:
            return ValueDiff(path, kind, "fail", reason)
        if isinstance(one, Lazy) or isinstance(other, Lazy):
            name = one.kind if isinstance(one, Lazy) else other.kind
            words = f"a {name} can be read only once; return a list instead"
            return ValueDiff(path, kind, "unknown", words)
        if _is_number(one) and _is_number(other):
            return self._compare_numbers(path, kind, one, other, exact)
        return _compare_words(path, kind, one, other)

    def _compare_numbers(
        self, path: str, kind: ValueKind, one: Any, other: Any, exact: Any
    ) -> ValueDiff:
        if _class_of(one) != _class_of(other):
            words = f"a {_class_of(other)}; the reference gives a {_class_of(one)}"
            return ValueDiff(path, kind, "fail", words)
        truth = exact if _is_number(exact) else None
        found = self._numbers(path, one, other, truth)
        if found.verdict != "pass" and isinstance(one, float) and isinstance(other, float):
            near = [
                torch.tensor(value, dtype=self._narrowest, device="cpu") for value in (one, other)
            ]
            rounded = self._numbers(path, near[0], near[1], truth)
            if rounded.verdict == "pass":
                words = f"{rounded.reason} (read off a tensor of {self._narrowest})"
                found = replace(found, verdict="pass", reason=words)
        sides = (one, other) if self._keep else None
        return ValueDiff(path, kind, found.verdict, found.reason, found, sides)

    def _numbers(self, path: str, one: Any, other: Any, exact: Any) -> TensorComparison:
        try:
            return compare_tensors(
                _plain(one), _plain(other), path, self._config, exact=_plain(exact)
            )
        except (NotImplementedError, RuntimeError, TypeError) as error:
            # A tensor subclass may support nothing of what a comparison needs.
            words = " ".join(str(error).split())[:200]
            reason = f"{type(one).__name__} cannot be compared: {words}"
            return TensorComparison(name=path, verdict="unknown", reason=reason)


def _unlike_containers(reference: TrialOutcome, test: TrialOutcome) -> Iterator[ValueDiff]:
    for path, kind in reference.containers.items():
        other = test.containers.get(path)
        if other is None and path in test.values:
            other = _class_of(test.values[path].leaf)
        if other is not None and other != kind:
            words = f"it is a {other}; the reference gives a {kind}"
            yield ValueDiff(path, "structure", "fail", words)
    for path, kind in test.containers.items():
        if path not in reference.containers and path in reference.values:
            was = _class_of(reference.values[path].leaf)
            yield ValueDiff(
                path, "structure", "fail", f"it is a {kind}; the reference gives a {was}"
            )


def _presence(one: Any, other: Any) -> str:
    if one is MISSING and other is MISSING:
        return "missing on both sides"
    if other is MISSING:
        return f"missing in the test; the reference gives a {_class_of(one)}"
    if one is MISSING:
        return f"only in the test: a {_class_of(other)}"
    if (one is None) != (other is None):
        return f"{_shown(other)}; the reference gives {_shown(one)}"
    return ""


def _compare_words(path: str, kind: ValueKind, one: Any, other: Any) -> ValueDiff:
    if isinstance(one, Opaque) and isinstance(other, Opaque):
        if one == other:
            return ValueDiff(path, kind, "pass", f"{one.kind}: only its type was compared")
        return ValueDiff(path, kind, "fail", f"{other.kind}; the reference gives {one.kind}")
    if type(one) is type(other) and (one is other or one == other):
        return ValueDiff(path, kind, "pass", "equal")
    return ValueDiff(path, kind, "fail", f"{_shown(other)}; the reference gives {_shown(one)}")


def _is_number(value: Any) -> bool:
    if isinstance(value, (torch.Tensor, bool, int, float, complex)):
        return not isinstance(value, enum.Enum)
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return type(value).__module__ == "numpy" and kind in "biufc"


def _class_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        # A parameter that comes back as a plain tensor is the same to its reader.
        return "Tensor" if isinstance(value, torch.nn.Parameter) else type(value).__name__
    if isinstance(value, (Opaque, Lazy)):
        return value.kind
    return type(value).__name__


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor) or type(value).__module__ != "numpy":
        return value
    import numpy

    return torch.from_numpy(numpy.ascontiguousarray(value))


def _shown(value: Any) -> str:
    if isinstance(value, (str, bytes, int, float, bool, enum.Enum, type(None))):
        return repr(value)[:120]
    return f"a {_class_of(value)}"
