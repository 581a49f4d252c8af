"""Holds the operators that a device file names against those that the installed torch knows.

A misspelt operator would be denied for nothing, or allowed in vain.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from compilescope.backends.device_files import device_path, is_shipped
from compilescope.instrument.torchapi.calls.operators import (
    argument_names,
    is_composite,
    is_torch_name,
    known_operators,
)
from compilescope.knowledge.rules.hardware.op_names import OpPatterns, canonical
from compilescope.record.device import Device, parse_comparison
from compilescope.record.device_problems import is_pattern, op_patterns
from compilescope.record.devicefile import (
    DeviceFile,
    DeviceFileProblem,
    Placed,
    examine_device,
    read_text,
)

log = logging.getLogger(__name__)
_told: set[str] = set()
_WILD = re.compile(r"[*?\[]")
_MOST_GUESSES = 20
"""Names for which the one that was meant is looked for, which takes long. Chosen: a file with more
unknown names was not written for this torch, and guesses would not help."""


class NamedOperators(msgspec.Struct, frozen=True):
    """What torch says to the operators of a device file."""

    problems: tuple[DeviceFileProblem, ...]
    notes: tuple[DeviceFileProblem, ...]
    """Nothing wrong, but perhaps not what was meant."""
    unchecked: tuple[str, ...]
    """Names in libraries that are not loaded here."""


def examine_operators(file: DeviceFile) -> NamedOperators:
    problems: list[DeviceFileProblem] = []
    notes: list[DeviceFileProblem] = []
    unchecked: list[str] = []
    known = _KnownOperators.now()
    for placed in file.patterns:
        if not is_pattern(placed.name):
            continue  # That is a problem of its own.
        library = canonical(placed.name).partition(".")[0]
        if library not in known.libraries | {"torch", "higher_order"}:
            unchecked.append(placed.name)
            continue
        problem = _unknown(placed, known, guess=len(problems) < _MOST_GUESSES)
        if problem is not None:
            problems.append(problem)
        elif not _WILD.search(placed.name) and is_composite(placed.name):
            what = (
                f"{placed.name} is composed of other operators: graphs at ATen level "
                "contain only those"
            )
            notes.append(DeviceFileProblem(placed.line, placed.key, what))
    problems += _arguments(file)
    return NamedOperators(tuple(problems), tuple(notes), tuple(dict.fromkeys(unchecked)))


def unknown_in_file(wanted: str) -> list[str]:
    """What a device's own file names and torch does not know; nothing for a shipped device."""
    path = device_path(wanted)
    if is_shipped(path):
        return []
    problems = examine_operators(examine_device(read_text(path))).problems
    return [f"{path}:{each.line}: {each}. {each.hint}".strip() for each in problems]


def unknown_in_device(device: Device) -> list[str]:
    """The same for a device that was made in code."""
    patterns = tuple(
        Placed(0, ".".join(part for part in path if isinstance(part, str)), name)
        for path, name in op_patterns(device)
    )
    whens = (0,) * len(device.ops.conditions)
    problems = examine_operators(DeviceFile(device, (), device, patterns, whens)).problems
    return [f"{device.name}: {each}. {each.hint}".strip() for each in problems]


def unknown_names(names: Iterable[str], key: str) -> list[DeviceFileProblem]:
    """Those of a list of operators that torch does not know."""
    patterns = tuple(Placed(0, key, name) for name in names)
    return list(examine_operators(DeviceFile(None, (), None, patterns)).problems)


def warn_of(sentences: Iterable[str]) -> None:
    """Each once in a process: what they speak of would refuse, or take, nothing at all."""
    for sentence in sentences:
        if sentence not in _told:
            _told.add(sentence)
            log.warning("%s", sentence)


class _KnownOperators(NamedTuple):
    """Operators of this torch."""

    overloads: frozenset[str]
    bases: frozenset[str]
    """Without overloads: `aten.sort`."""
    libraries: frozenset[str]

    @classmethod
    def now(cls) -> _KnownOperators:
        known = known_operators()
        bases = frozenset(".".join(op.split(".")[:2]) for op in known)
        return cls(known, bases, frozenset(op.partition(".")[0] for op in known))


def _unknown(placed: Placed, known: _KnownOperators, guess: bool) -> DeviceFileProblem | None:
    name = placed.name
    full = canonical(name)
    if full in known.bases or full in known.overloads or is_torch_name(name):
        return None
    if _WILD.search(name):
        if name.startswith("torch.") and not name.startswith("torch.ops."):
            return None  # It is told apart by its place in Python, which no list has.
        pattern = OpPatterns((name,))
        if any(pattern.match(op) for op in known.overloads):
            return None
        return DeviceFileProblem(
            placed.line, placed.key, f"no operator of this torch matches {name}"
        )
    library, base, *overload = full.split(".", 2)
    if library == "higher_order" and not overload:
        return None
    if f"{library}.{base}" in known.bases and overload:
        family = sorted(op for op in known.overloads if op.startswith(f"{library}.{base}."))
        near = difflib.get_close_matches(full, family, 1, cutoff=0) or family
        what = f"this torch has no overload {name}"
    else:
        near = difflib.get_close_matches(f"{library}.{base}", known.bases, 1) if guess else []
        what = f"this torch has no operator {name}"
    hint = f"Did you mean {near[0]}?" if near else ""
    return DeviceFileProblem(placed.line, placed.key, what, hint)


def _arguments(file: DeviceFile) -> list[DeviceFileProblem]:
    """Conditions on arguments that their operators do not have."""
    problems = []
    conditions = file.sound.ops.conditions if file.sound else ()
    for condition, line in zip(conditions, file.when_lines, strict=False):
        names = argument_names(condition.op)
        try:
            wanted = parse_comparison(condition.when).argument
        except ValueError:
            continue  # That is a problem of its own.
        if names and wanted not in names:
            near = difflib.get_close_matches(wanted, names, 1)
            hint = f"Did you mean {near[0]}?" if near else f"It has {', '.join(sorted(names))}."
            what = f"{condition.op} has no argument {wanted}"
            problems.append(DeviceFileProblem(line, "ops.conditions.when", what, hint))
    return problems
