"""Reads device files, and says what is wrong with one by line and key.

A key that is misspelt, or a value of the wrong kind, is refused: a limit that nobody reads would
let everything pass.
What is right beside it can still be checked.
"""

from __future__ import annotations

import errno
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from compilescope.base.errors import ToolError
from compilescope.record.byte_counts import parse_bytes as parse_bytes
from compilescope.record.device import Device
from compilescope.record.device_problems import (
    Found,
    key_lines,
    op_patterns,
    sense_problems,
    structure_problems,
)
from compilescope.record.device_problems import Path as KeyPath
from compilescope.record.plain_files import read_given

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LINE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_MOST_BYTES = 2**20
"""Chosen: the files that are shipped have a few kilobytes."""
_LONG_NUMBER = re.compile(r"[\d_]{1000,}")
_DEEP_KEY = re.compile(
    r"""(?:^|[\[{,])[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){40}""", re.M
)
"""A key of so many parts takes Python's reader time with their square."""


class DeviceFileProblem(msgspec.Struct, frozen=True):
    """Something that is wrong with a device file."""

    line: int
    key: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.key}: {self.what}" if self.key else self.what


class Placed(NamedTuple):
    """A name in a device file, and where it stands."""

    line: int
    key: str
    name: str


class DeviceFile(msgspec.Struct, frozen=True):
    """What became of a file: a device, or what is wrong with it."""

    device: Device | None
    problems: tuple[DeviceFileProblem, ...]
    sound: Device | None = None
    """Its parts that are well formed; the device itself where all are."""
    patterns: tuple[Placed, ...] = ()
    """The operators that it names."""
    when_lines: tuple[int, ...] = ()
    """Of its conditions."""


def read_device(path: Path) -> Device:
    return parse_device(read_text(path), str(path))


def read_text(path: Path) -> str:
    try:
        # Some editors of Windows begin a file with a mark, which TOML does not know.
        return read_given(path, most=_MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        if error.errno == errno.EFBIG:
            message = f"{path} is larger than 1 MiB, so it is not a device file."
            raise ToolError(message) from None
        raise ToolError(f"The device file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ToolError(f"The device file {path} is not UTF-8 text.") from None


def parse_device(text: str, origin: str) -> Device:
    """The device that a text declares; `origin` is what to call the text in an error."""
    file = examine_device(text)
    if file.device is not None and not file.problems:
        return file.device
    first, *rest = file.problems
    more = f"{len(rest)} more: compilescope devices check {shlex.quote(origin)}" if rest else ""
    hint = " ".join(filter(None, (first.hint, more)))
    raise ToolError(f"{origin}:{first.line}: {first}.", hint=hint)


def examine_device(text: str) -> DeviceFile:
    """All that is wrong with a text, in the order of its lines."""
    data = _read(text)
    if isinstance(data, DeviceFileProblem):
        return DeviceFile(None, (data,))
    lines = key_lines(text)
    found = list(structure_problems(data, Device, ()))
    sound, was = sound_part(data, found)
    if sound is None:
        return DeviceFile(None, _placed(found, lines))
    patterns = [(was(path), name) for path, name in op_patterns(sound)]
    conditions = [
        was(("ops", "conditions", number, "when")) for number in range(len(sound.ops.conditions))
    ]
    device = None if found else sound
    found += [(was(path), what, hint) for path, what, hint in sense_problems(sound)]
    return DeviceFile(
        device,
        _placed(found, lines),
        sound,
        tuple(Placed(_line(lines, path), _shown(path), name) for path, name in patterns),
        tuple(_line(lines, path) for path in conditions),
    )


def _read(text: str) -> dict[str, Any] | DeviceFileProblem:
    if _DEEP_KEY.search(text):
        return DeviceFileProblem(1, "", "nested too deeply")
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return _syntax(str(error), text)
    except RecursionError:
        return DeviceFileProblem(1, "", "nested too deeply")
    except ValueError:  # Python reads no number of thousands of digits.
        number = _LONG_NUMBER.search(text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        return DeviceFileProblem(line, "", "a number has too many digits")
    return data


def _placed(found: Iterable[Found], lines: dict[KeyPath, int]) -> tuple[DeviceFileProblem, ...]:
    problems = [
        DeviceFileProblem(_line(lines, path), _shown(path), what, hint)
        for path, what, hint in found
    ]
    return tuple(sorted(problems, key=lambda problem: problem.line))


def _syntax(message: str, text: str) -> DeviceFileProblem:
    place = _LINE.search(message)
    line = int(place[1]) if place and place[1] else max(1, len(text.splitlines()))
    words = _LINE.sub("", message)
    return DeviceFileProblem(line, "", f"not TOML: {words[:1].lower()}{words[1:]}")


def _line(lines: dict[KeyPath, int], path: KeyPath) -> int:
    """Of a key, or of the nearest table around it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _shown(path: KeyPath) -> str:
    return ".".join(part for part in path if isinstance(part, str))


Was = Callable[[KeyPath], KeyPath]
"""From a key of what is left to the key that it was."""
_ROUNDS = 4
"""Chosen: leaving something out may make another thing wrong, as a table without its name; a file
that is still wrong then is not looked into."""
_UNNAMED = "unnamed"


def sound_part(data: dict[str, Any], found: Sequence[Found]) -> tuple[Device | None, Was]:
    """The device without what is wrong; None where leaving that out leads nowhere."""
    moves: list[dict[KeyPath, list[int]]] = []
    problems = list(found)
    for _ in range(_ROUNDS):
        if not problems:
            return msgspec.convert(data, Device), lambda path: _was(path, moves)
        wrong = {path for path, _, _ in problems}
        moved: dict[KeyPath, list[int]] = {}
        data = _without(data, (), wrong, moved)
        data.setdefault("name", _UNNAMED)
        moves.append(moved)
        problems = list(structure_problems(data, Device, ()))
    return None, lambda path: path


def _without(
    value: Any, path: KeyPath, wrong: set[KeyPath], moved: dict[KeyPath, list[int]]
) -> Any:
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


def _was(path: KeyPath, moves: Sequence[dict[KeyPath, list[int]]]) -> KeyPath:
    """Undoes the moves, the last one first. A list is named by where it was before its own move."""
    for moved in reversed(moves):
        old: KeyPath = ()
        for part in path:
            left = moved.get(old)
            old = (*old, left[part] if left is not None and isinstance(part, int) else part)
        path = old
    return path
