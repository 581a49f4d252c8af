"""A device file without the parts that are wrong, so that the rest can still be checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from compilescope.model.device import Device
from compilescope.model.device_problems import Found, structure_problems
from compilescope.model.toml_lines import Path

Was = Callable[[Path], Path]
"""From a key of what is left to the key that it was."""
_ROUNDS = 4
"""Chosen: leaving something out may make another thing wrong, as a table without its name; a file
that is still wrong then is not looked into."""
_UNNAMED = "unnamed"


def sound_part(data: dict[str, Any], found: Sequence[Found]) -> tuple[Device | None, Was]:
    """The device without what is wrong; None where leaving that out leads nowhere."""
    moves: list[dict[Path, list[int]]] = []
    problems = list(found)
    for _ in range(_ROUNDS):
        if not problems:
            return msgspec.convert(data, Device), lambda path: _was(path, moves)
        wrong = {path for path, _, _ in problems}
        moved: dict[Path, list[int]] = {}
        data = _without(data, (), wrong, moved)
        data.setdefault("name", _UNNAMED)
        moves.append(moved)
        problems = list(structure_problems(data, Device, ()))
    return None, lambda path: path


def _without(value: Any, path: Path, wrong: set[Path], moved: dict[Path, list[int]]) -> Any:
    if isinstance(value, dict):
        kept = {
            key: _without(item, (*path, key), wrong, moved)
            for key, item in value.items()
            if (*path, key) not in wrong
        }
        # A list of which nothing is left says nothing, not "none".
        return {key: item for key, item in kept.items() if item != [] or value[key] == []}
    if isinstance(value, list):
        left = [number for number in range(len(value)) if (*path, number) not in wrong]
        if len(left) < len(value):
            moved[path] = left
        return [_without(value[number], (*path, number), wrong, moved) for number in left]
    return value


def _was(path: Path, moves: Sequence[dict[Path, list[int]]]) -> Path:
    """Undoes the moves, the last one first. A list is named by where it was before its own move."""
    for moved in reversed(moves):
        old: Path = ()
        for part in path:
            left = moved.get(old)
            old = (*old, left[part] if left is not None and isinstance(part, int) else part)
        path = old
    return path
