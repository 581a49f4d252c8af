"""What can be wrong with a device file: keys, kinds of values, and values that make no sense."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

import msgspec

from compilescope.model.byte_counts import parse_bytes
from compilescope.model.device import DTYPE_ALIASES, DTYPES, Device, parse_comparison
from compilescope.model.toml_lines import Path

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
