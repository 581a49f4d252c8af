"""What can be wrong with a device file: keys, kinds of values, and values that make no sense;
and on which line of the TOML each stands.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

import msgspec

from compilescope.record.byte_counts import parse_bytes
from compilescope.record.device import DTYPE_ALIASES, DTYPES, Device, parse_comparison

Path = tuple[str | int, ...]
"""Keys, and positions in arrays."""

_BLANK = re.compile(r"(?:[\s]|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'", re.S
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]+")
_NAME = re.compile(r"^[A-Za-z0-9][\w.+-]*$")
_PATTERN = re.compile(r"^[\w.:*?\[\]!-]+$")

Found = tuple[Path, str, str]
"""The key, what is wrong with it, and a hint."""


def op_patterns(device: Device) -> tuple[tuple[Path, str], ...]:
    """The operators that a device names, by the keys under which it does."""
    ops = device.ops
    named: list[tuple[Path, str]] = []
    for key, patterns in (("denied", ops.denied), ("allowed", ops.allowed)):
        named += [(("ops", key, number), op) for number, op in enumerate(patterns)]
    for number, condition in enumerate(ops.conditions):
        named.append((("ops", "conditions", number, "op"), condition.op))
    named += [(("dtypes", "per_op", op), op) for op in device.dtypes.per_op]
    for number, alignment in enumerate(device.shapes.alignment):
        path = ("shapes", "alignment", number, "ops")
        named += [((*path, index), op) for index, op in enumerate(alignment.ops)]
    return tuple(named)


def is_pattern(name: str) -> bool:
    """Could it be an operator's name, or a pattern of names?"""
    return _PATTERN.match(name) is not None


def structure_problems(data: dict[str, Any], table: Any, path: Path) -> Iterator[Found]:
    """Keys that are not known, are missing or have values of the wrong kind."""
    fields = {field.name: field for field in msgspec.structs.fields(table)}
    for key in data:
        if key not in fields:
            near = difflib.get_close_matches(key, fields, 1)
            hint = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(fields)}."
            yield (*path, key), "unknown key", hint
    for name, field in fields.items():
        if name not in data:
            if field.required:
                yield path, f"the key {name} is missing", ""
            continue
        if name.endswith("_bytes"):
            try:
                data[name] = parse_bytes(data[name])
            except ValueError as error:
                yield (*path, name), str(error), ""
            continue
        yield from _value(data[name], field.type, (*path, name))


def _value(value: Any, kind: Any, path: Path) -> Iterator[Found]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if isinstance(value, dict):
            yield from structure_problems(value, kind, path)
        else:
            yield path, f"expected a table, got {_kind(value)}", ""
        return
    inner = get_args(kind)
    if get_origin(kind) is tuple and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _value(item, inner[0], (*path, number))
    elif get_origin(kind) is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from _value(item, inner[1], (*path, key))
    elif get_origin(kind) is Literal and value not in inner:
        near = difflib.get_close_matches(str(value), inner, 1)
        yield path, f"{value!r} is not one of {', '.join(inner)}", _perhaps(near)
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            yield path, f"expected {_wanted(kind)}, got {_kind(value)}", ""


def _wanted(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return "an array"
    if get_origin(kind) is dict:
        return "a table"
    names = {int: "a whole number", str: "a string", bool: "true or false"}
    return next((names[k] for k in (kind, *get_args(kind)) if k in names), str(kind))


def _kind(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "an array"
    return f"the string {value!r}" if isinstance(value, str) else repr(value)


def _perhaps(near: list[str]) -> str:
    return f"Did you mean {near[0]}?" if near else ""


def sense_problems(device: Device) -> Iterator[Found]:
    """What a type cannot say."""
    if not _NAME.match(device.name):
        yield ("name",), f"{device.name!r} is not a name of letters, digits, dots and hyphens", ""
    yield from _numbers(device)
    yield from _formats(device)
    if device.dtypes.wider_integers == "narrowed" and device.dtypes.integer_width is None:
        yield ("dtypes", "wider_integers"), "has no effect without integer_width", ""
    if device.layout.reordered_rows != "taken" and not device.layout.dense_rows:
        yield ("layout", "reordered_rows"), "has no effect without dense_rows", ""
    for number, condition in enumerate(device.ops.conditions):
        try:
            parse_comparison(condition.when)
        except ValueError as error:
            yield ("ops", "conditions", number, "when"), str(error), ""
    for path, pattern in op_patterns(device):
        if not is_pattern(pattern):
            yield (
                path,
                f"{pattern!r} is not an operator such as aten.sort.stable or aten._fft_*",
                "",
            )
    for number, op in enumerate(device.ops.denied):
        if op in device.ops.allowed:
            yield ("ops", "denied", number), f"{op} is also listed as allowed", ""


def _numbers(device: Device) -> Iterator[Found]:
    least: list[tuple[Path, int | None]] = [
        (("shapes", "max_rank"), device.shapes.max_rank),
        (("shapes", "max_size"), device.shapes.max_size),
        (("layout", "max_rank"), device.layout.max_rank),
        (("dtypes", "integer_width"), device.dtypes.integer_width),
    ]
    for number, alignment in enumerate(device.shapes.alignment):
        path = ("shapes", "alignment", number)
        least.append(((*path, "multiple"), alignment.multiple))
        if not alignment.dims:
            yield (*path, "dims"), "it names no dimension", ""
    for key, value in least:
        if value is not None and value < 1:
            yield key, f"{value} allows nothing; it must be at least 1", ""


def _formats(device: Device) -> Iterator[Found]:
    named: list[tuple[Path, Iterable[str]]] = [(("dtypes", "supported"), device.dtypes.supported)]
    named += [(("dtypes", "per_op", op), names) for op, names in device.dtypes.per_op.items()]
    for path, names in named:
        for number, name in enumerate(names):
            if name not in DTYPES:
                plain = name.removeprefix("torch.")
                near = DTYPE_ALIASES.get(plain) or (plain if plain in DTYPES else None)
                guess = [near] if near else difflib.get_close_matches(plain, DTYPES, 1)
                yield (*path, number), f"{name!r} is not a dtype", _perhaps(guess)


# On which line each key of a TOML text stands. Python's own reader does not tell.
#
# The text must be valid TOML: it was read before.


def key_lines(text: str) -> dict[Path, int]:
    """Lines count from 1. A table has the line of its header."""
    return _Scan(text.replace("\r\n", "\n")).lines


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}
        self._counted = (0, 1)
        table: Path = ()
        self._skip()
        while self.at < len(text):
            if text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip()

    def _skip(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"no TOML at position {self.at}")
        self.at = match.end()
        return match[0]

    def _note(self, path: Path) -> None:
        # Counting on from the last place keeps it linear in the text.
        before, line = self._counted
        line += self.text.count("\n", before, self.at)
        self._counted = (self.at, line)
        self.lines.setdefault(path, line)

    def _header(self) -> Path:
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        self._skip()
        *outer, last = self._key()
        self.at += 2 if many else 1
        path: Path = ()
        for part in outer:
            path = self._inside((*path, part))
        path = (*path, last)
        self._note(path)
        if not many:
            return self._inside(path)
        self._arrays[path] = self._arrays.get(path, -1) + 1
        path = self._inside(path)
        self._note(path)
        return path

    def _inside(self, path: Path) -> Path:
        """A header that names an array of tables means the last of them."""
        return (*path, self._arrays[path]) if path in self._arrays else path

    def _key(self) -> list[str]:
        parts = []
        while True:
            quoted = self.text[self.at] in "\"'"
            part = self._take(_STRING if quoted else _BARE_KEY)
            parts.append(part[1:-1] if quoted else part)
            self._skip()
            if self.text[self.at] != ".":
                return parts
            self.at += 1
            self._skip()

    def _pair(self, table: Path) -> None:
        start = self.at
        parts = self._key()
        after, self.at = self.at, start
        for count in range(1, len(parts) + 1):
            self._note((*table, *parts[:count]))
        self.at = after + 1
        self._skip()
        self._value((*table, *parts))

    def _value(self, path: Path) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._take(_STRING)
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            self._take(_SCALAR)

    def _array(self, path: Path) -> None:
        number = 0
        self.at += 1
        self._skip()
        while self.text[self.at] != "]":
            self._note((*path, number))
            self._value((*path, number))
            number += 1
            self._skip()
            if self.text[self.at] == ",":
                self.at += 1
                self._skip()
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        self._skip()
        while self.text[self.at] != "}":
            self._pair(path)
            self._skip()
            if self.text[self.at] == ",":
                self.at += 1
                self._skip()
        self.at += 1
