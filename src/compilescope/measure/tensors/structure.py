"""Results of any kind, taken apart into leaves with a path each, and the containers around them.

Dicts, tuples, namedtuples, lists, sets, dataclasses, ModelOutput, caches and other objects that
hold tensors in attributes. What is met twice is listed twice, but a cycle only once.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

_SCALARS = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)
_DEEPEST = 40
"""Chosen: far deeper than results are nested, far below Python's limit of recursion (1,000)."""
_MOST = 200_000
"""Levels and leaves: beyond them a value has no end, or none that a report could name. Chosen
likewise."""


class _NoValue:
    """There is nothing at this path."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = _NoValue()


class Lazy(NamedTuple):
    """A leaf that cannot be looked at without using it up: a generator, a file, an iterator."""

    kind: str


class Opaque(NamedTuple):
    """A leaf of which only the type is compared."""

    kind: str


class Structure(NamedTuple):
    """A value taken apart."""

    leaves: dict[str, Any]
    containers: dict[str, str]
    """What is at each path that is no leaf: `tuple of 2`, `dict`, `DynamicCache`."""


def flatten(value: Any, root: str = "output") -> dict[str, Any]:
    """The leaves by path: `output[0]`, `output['logits']`, `output.cache.layers[0].keys`."""
    return take_apart(value, root).leaves


def take_apart(value: Any, root: str = "output") -> Structure:
    found = Structure({}, {})
    _walk(value, root, found, ())
    return found


def argument_leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The leaves of a call's arguments: `args[0]`, and by name."""
    leaves = flatten(args, "args")
    for name, value in kwargs.items():
        leaves.update(flatten(value, name))
    return leaves


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor that can be reached, the same one as often as it is there."""
    for leaf in take_apart(value).leaves.values():
        if isinstance(leaf, torch.Tensor):
            yield leaf


def _walk(value: Any, path: str, found: Structure, above: tuple[int, ...]) -> None:
    parts = None
    if not is_leaf(value):
        parts = _parts(value)
    too_far = len(above) > _DEEPEST or len(found.leaves) > _MOST
    if parts is None or id(value) in above or too_far:
        leaf = value if is_leaf(value) else _unreadable(value)
        found.leaves[_free(path, found.leaves)] = leaf
        return
    found.containers[path] = _kind(value)
    for name, part in parts:
        _walk(part, path + name, found, (*above, id(value)))


def is_leaf(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, (torch.Tensor, *_SCALARS, enum.Enum))
        or type(value).__module__ == "numpy"
    )


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """The parts of a container with their names; None for what is none."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    if isinstance(value, tuple):
        names: tuple[str, ...] = getattr(value, "_fields", ())
        return [(f".{name}", part) for name, part in zip(names, value, strict=True)]
    if isinstance(value, Mapping):
        fields = dataclasses.is_dataclass(value)  # A ModelOutput: its keys are its fields.
        return [(f".{k}" if fields else f"[{_key(k)}]", part) for k, part in value.items()]
    if isinstance(value, (set, frozenset)):
        return [(f"{{{number}}}", part) for number, part in enumerate(_ordered(value))]
    if isinstance(value, (type, torch.nn.Module, types.ModuleType)) or callable(value):
        return None
    return _attributes(value)


def _attributes(value: Any) -> list[tuple[str, Any]] | None:
    fields = dict(getattr(value, "__dict__", None) or {})
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                fields.setdefault(name, getattr(value, name))
    if not fields and (isinstance(value, Iterator) or not hasattr(value, "__dict__")):
        return None
    return [(f".{name}", part) for name, part in fields.items()]


def _unreadable(value: Any) -> Lazy | Opaque:
    if isinstance(value, (Iterator, types.CoroutineType, types.AsyncGeneratorType)):
        return Lazy(_kind(value))
    if isinstance(value, (types.FunctionType, types.MethodType, type)):
        return Opaque(f"{_kind(value)} {value.__qualname__}")
    return Opaque(_kind(value))


def _kind(value: Any) -> str:
    name = type(value).__qualname__
    if isinstance(value, (list, tuple, set, frozenset)) and not hasattr(value, "_fields"):
        return f"{name} of {len(value)}"
    return name


def _key(key: Any) -> str:
    return repr(key) if isinstance(key, (str, int, float, bool, tuple)) else type(key).__name__


def _ordered(values: Any) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _free(path: str, taken: dict[str, Any]) -> str:
    """Two keys may read the same: `1` of a tensor and of another."""
    number, free = 2, path
    while free in taken:
        free, number = f"{path}#{number}", number + 1
    return free
