"""Random results, kept in the order in which they were drawn, and given again to a wider run."""

from __future__ import annotations

from typing import Any

import torch

from compilescope.torchapi.calls.schemas import written_arguments

_WHOLE = frozenset(
    {
        *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
        *("bernoulli", "normal", "multinomial", "poisson", "binomial"),
        *("_standard_gamma", "_sample_dirichlet"),
    }
)
"""Operators whose result is nothing but what was drawn."""


class NotReplayable(Exception):
    """What was drawn cannot be given to a wider run."""


def is_drawing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Does it draw random numbers, called like this?"""
    if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
        return False
    given = _named(func, args, kwargs)
    if any(given.get(name) is False for name in ("train", "training")):
        return False
    chances = ["dropout_p", "dropout"] + (["p"] if "dropout" in str(func) else [])
    return not any(name in given and given[name] == 0 for name in chances)


def _named(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    schema = getattr(func, "_schema", None)
    arguments = schema.arguments if schema is not None else ()
    usual = {a.name: a.default_value for a in arguments if a.has_default_value()}
    return {**usual, **dict(zip((a.name for a in arguments), args, strict=False)), **kwargs}


class Tape:
    """What the random operators of one run gave."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, Any]] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    def record(self, func: Any, args: tuple[Any, ...], result: Any) -> None:
        drawn = _drawn(func, args, result)
        kept = drawn.detach().clone() if isinstance(drawn, torch.Tensor) else None
        self._entries.append((str(func), kept))

    def rewind(self) -> None:
        self._next = 0

    def replay(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result that `func` has with the numbers that were drawn at this place before."""
        entry = self._entries[self._next] if self._next < len(self._entries) else None
        self._next += 1
        if entry is None or entry[0] != str(func) or entry[1] is None:
            raise NotReplayable(f"the random numbers that {func} draws cannot be replayed")
        drawn = entry[1]
        if _name(func) == "native_dropout":
            given = _named(func, args, kwargs)
            return _dropped(given["input"], drawn, float(given["p"])), drawn
        for position in written_arguments(func):
            if args[position].shape != drawn.shape:
                raise NotReplayable(f"{func} draws a different number of values")
            return args[position].copy_(drawn)
        return drawn.to(torch.float64) if drawn.is_floating_point() else drawn


def _dropped(value: torch.Tensor, mask: torch.Tensor, chance: float) -> torch.Tensor:
    return torch.zeros_like(value) if chance >= 1 else value * mask.to(value.dtype) / (1 - chance)


def _drawn(func: Any, args: tuple[Any, ...], result: Any) -> Any:
    """The tensor that holds what was drawn; None where it is mixed with what was computed."""
    if _name(func) == "native_dropout":
        return result[1]
    written = written_arguments(func)
    if len(written) == 1 and written[0] < len(args) and _name(func).endswith("_"):
        return args[written[0]]
    return result if _name(func) in _WHOLE and isinstance(result, torch.Tensor) else None


def _name(func: Any) -> str:
    parts = str(func).split(".")
    return parts[1] if len(parts) > 1 else parts[0]
