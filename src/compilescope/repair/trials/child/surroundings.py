"""Plain values around a region: globals of the user's modules, attributes of the user's classes.

A region may write into them without holding them. Noted before a replay, compared and brought back
after it. Containers are looked at one level deep.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from compilescope.model.stack import origin_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (list, dict, set, deque)
_READ_AND_WRITTEN = (
    "__iter__",
    "__len__",
    "__getitem__",
    "keys",
    "items",
    "clear",
    "update",
    "extend",
)
_NOBODYS = ("compilescope", "torch", "sitecustomize")
_MOST = 20_000
"""Values that are watched. Chosen: they are looked at before and after every replay; of a larger
program the rest is not watched."""
_SHORT = 80
"""Letters of a value in words. Chosen: what a report can show."""


class CallSurroundings:
    """The plain values around a region when this was made."""

    def __init__(self) -> None:
        self._known: list[tuple[str, Any, str, Any, Any]] = []
        for name, holder, key, value in _values():
            content = _content(value) if not isinstance(value, _PLAIN) else None
            self._known.append((name, holder, key, value, content))
            if len(self._known) >= _MOST:
                break

    def changes(self) -> dict[str, str]:
        """What is no longer as it was, in words."""
        found: dict[str, str] = {}
        for name, holder, key, value, content in self._known:
            now = vars(holder).get(key)
            if now is not value and not (isinstance(value, _PLAIN) and _equal(now, value)):
                found[name] = _words(now)
            elif content is not None and not _same(_content(value), content):
                found[name] = _words(value)
        return found

    def restore(self) -> None:
        for _, holder, key, value, content in self._known:
            if vars(holder).get(key) is not value:
                setattr(holder, key, value)
            if content is not None and not _same(_content(value), content):
                value.clear()
                if isinstance(value, (dict, set)):
                    value.update(content)
                else:
                    value.extend(content)


def _values() -> Iterator[tuple[str, Any, str, Any]]:
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or name.partition(".")[0] in _NOBODYS:
            continue
        file = vars(module).get("__file__")
        # Some modules of libraries make up a name that is no path.
        if not isinstance(file, str) or not os.path.isabs(file) or origin_of(file) != "user":
            continue
        for key, value in list(vars(module).items()):
            if key.startswith("__"):
                continue
            if _is_watched(value):
                yield f"{name}.{key}", module, key, value
            elif isinstance(value, type) and value.__module__ == name:
                yield from _of_class(value)


def _of_class(kind: type) -> Iterator[tuple[str, Any, str, Any]]:
    for key, value in list(vars(kind).items()):
        if not key.startswith("__") and _is_watched(value):
            yield f"{kind.__module__}.{kind.__qualname__}.{key}", kind, key, value


def _is_watched(value: Any) -> bool:
    """A container with ways of its own is left alone: to read a registry may import all that it
    could name."""
    if isinstance(value, _PLAIN):
        return True
    return isinstance(value, _CONTAINERS) and not any(
        isinstance(way := getattr(type(value), name, None), FunctionType)
        and way.__module__ != "collections"  # A Counter's ways are known.
        for name in _READ_AND_WRITTEN
    )


def _content(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else list(value)


def _same(one: Any, other: Any) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, dict):
        return all(key in other and _equal(item, other[key]) for key, item in one.items())
    return all(_equal(a, b) for a, b in zip(one, other, strict=True))


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and isinstance(one, _PLAIN) and one == other


def _words(value: Any) -> str:
    if isinstance(value, _PLAIN):
        return repr(value)[:_SHORT]
    if _is_watched(value):
        items = value.items() if isinstance(value, dict) else value
        shown = [repr(item)[:_SHORT] for item in items if _is_shown(item)]
        return f"{type(value).__name__} of {len(value)}: {', '.join(shown)}"[:400]
    return type(value).__qualname__


def _is_shown(item: Any) -> bool:
    parts = item if isinstance(item, tuple) else (item,)
    return all(isinstance(part, _PLAIN) for part in parts)
