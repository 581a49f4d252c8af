"""What a call came to, eagerly: results, gradients, what it wrote, what it raised. Two compared."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from compilescope.change.repair.trials.child.notes import describe_error
from compilescope.measure.tensors.structure import flatten


@dataclass
class CallOutcome:
    error: Exception | None = None
    raised: bool = False
    """By the program itself: what an operator of torch raises says which operator it was."""
    results: dict[str, Any] = field(default_factory=dict)
    gradients: dict[str, torch.Tensor | None] = field(default_factory=dict)
    written: dict[str, torch.Tensor] = field(default_factory=dict)
    printed: str = ""


def outcome_of(call: Callable[..., Any], given: Sequence[torch.Tensor]) -> CallOutcome:
    found = CallOutcome()
    torch.manual_seed(0)
    random.seed(0)
    out = io.StringIO()
    # Leaves, so that the call may write into what it is given, as into any other value.
    leaves = [each if each.requires_grad else each.clone() for each in given]
    try:
        with contextlib.redirect_stdout(out):
            result = call(*leaves)
    except Exception as error:  # Whatever it raises is its outcome.
        found.error, found.raised = error, _is_own(error)
        return found
    found.printed = out.getvalue()
    found.results = flatten(result)
    found.gradients = _gradients(found.results, leaves)
    found.written = {str(n): each.detach() for n, each in enumerate(leaves)}
    return found


def _is_own(error: Exception) -> bool:
    """By a `raise` or `assert` of the program."""
    return bool(describe_error(error)["raised"])


def _gradients(
    results: dict[str, Any], leaves: Sequence[torch.Tensor]
) -> dict[str, torch.Tensor | None]:
    ends = [each for each in results.values() if _is_differentiable(each)]
    if not ends:
        return {}
    total = sum((each.double() * _weights(each)).sum() for each in ends)
    wanted = [each for each in leaves if each.requires_grad]
    if not wanted:
        return {}
    found = torch.autograd.grad(total, wanted, allow_unused=True)  # type: ignore[arg-type]
    return {str(number): each for number, each in enumerate(found)}


def _weights(tensor: torch.Tensor) -> torch.Tensor:
    """Not all alike, so that elements which changed places are seen."""
    count = tensor.numel()
    return (1.0 + torch.arange(count, dtype=torch.float64) % 5).reshape(tensor.shape)


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def difference(
    old: CallOutcome,
    new: CallOutcome,
    *,
    other_errors: bool = False,
    other_output: bool = False,
    other_gradients: bool = False,
    zero_gradients: bool = False,
    more_graded: bool = False,
) -> str:
    """Empty where a caller could not tell them apart, but for what the fix states: another class
    of exception, other lines, other gradients, zeros for none, a result that requires one."""
    if old.error is not None or new.error is not None:
        if old.error is None:
            return f"it raises {new.error!r}"
        if new.error is None:
            return f"it does not raise {old.error!r}" if old.raised else ""
        same = type(old.error) is type(new.error) and str(old.error) == str(new.error)
        return "" if same or other_errors or not old.raised else f"it raises {new.error!r}"
    if old.printed != new.printed and not other_output:
        return f"it prints {new.printed!r} for {old.printed!r}"
    if old.results.keys() != new.results.keys():
        return "the result has another structure"
    for path, value in old.results.items():
        words = _unlike(value, new.results[path], more_graded=more_graded)
        if words:
            return f"result {path}: {words}"
    for number, value in old.written.items():
        words = _unlike(value, new.written[number], more_graded=more_graded)
        if words:
            return f"argument {number} after the call: {words}"
    for number, grad in () if other_gradients else old.gradients.items():
        found = new.gradients.get(number)
        if zero_gradients and grad is None and found is not None and not found.any():
            continue
        words = _unlike_gradient(grad, found)
        if words:
            return f"gradient of argument {number}: {words}"
    return ""


def _unlike(one: Any, other: Any, *, more_graded: bool = False) -> str:
    if not isinstance(one, torch.Tensor):
        same = type(one) is type(other) and (one == other or one != one)
        return "" if same else f"{other!r} for {one!r}"
    if not isinstance(other, torch.Tensor):
        return f"{other!r} for a tensor"
    for name in ("dtype", "shape", "requires_grad"):
        if more_graded and name == "requires_grad" and other.requires_grad:
            continue
        if getattr(one, name) != getattr(other, name):
            return f"{name} is {getattr(other, name)} for {getattr(one, name)}"
    rough = 2e-2 if one.dtype in (torch.float16, torch.bfloat16) else 1e-4
    a, b = one.detach().double(), other.detach().double()
    if not torch.allclose(a, b, rtol=rough, atol=1e-5, equal_nan=True):
        return f"{other.detach()} for {one.detach()}"
    return ""


def _unlike_gradient(one: torch.Tensor | None, other: torch.Tensor | None) -> str:
    """None and zeros are not the same: an optimizer passes over the one, and not the other."""
    if one is None or other is None:
        return "" if one is other else f"{other} for {one}"
    return _unlike(one, other)
