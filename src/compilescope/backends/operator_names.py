"""Holds the operators that a device file names against those that the installed torch knows.

A misspelt operator would be denied for nothing, or allowed in vain.
"""

from __future__ import annotations

import difflib
import re

import msgspec

from compilescope.model.device import parse_comparison
from compilescope.model.devicefile import DeviceFile, Placed, Problem
from compilescope.rules.op_names import OpPatterns, canonical
from compilescope.torchapi.known_ops import (
    argument_names,
    is_composite,
    is_torch_name,
    known_operators,
)

_WILD = re.compile(r"[*?\[]")


class NamedOperators(msgspec.Struct, frozen=True):
    """What torch says to the operators of a device file."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    """Nothing wrong, but perhaps not what was meant."""
    unchecked: tuple[str, ...]
    """Names in libraries that are not loaded here."""


def examine_operators(file: DeviceFile) -> NamedOperators:
    problems: list[Problem] = []
    notes: list[Problem] = []
    unchecked: list[str] = []
    known = known_operators()
    libraries = {op.partition(".")[0] for op in known}
    for placed in file.patterns:
        library = canonical(placed.name).partition(".")[0]
        if library not in libraries | {"torch", "higher_order"}:
            unchecked.append(placed.name)
            continue
        problem = _unknown(placed, known)
        if problem is not None:
            problems.append(problem)
        elif not _WILD.search(placed.name) and is_composite(placed.name):
            what = f"{placed.name} is made of other operators: graphs at ATen level hold those only"
            notes.append(Problem(placed.line, placed.key, what))
    problems += _arguments(file)
    return NamedOperators(tuple(problems), tuple(notes), tuple(dict.fromkeys(unchecked)))


def _unknown(placed: Placed, known: frozenset[str]) -> Problem | None:
    name = placed.name
    pattern = OpPatterns((name,))
    if any(pattern.match(op) for op in known) or is_torch_name(name):
        return None
    full = canonical(name)
    if _WILD.search(name):
        if name.startswith("torch.") and not name.startswith("torch.ops."):
            return None  # It is told apart by its place in Python, which no list has.
        return Problem(placed.line, placed.key, f"no operator of this torch matches {name}")
    library, base, *overload = full.split(".", 2)
    bases = {".".join(op.split(".")[:2]) for op in known}
    if library == "higher_order" and not overload:
        return None
    if f"{library}.{base}" in bases and overload:
        family = [op for op in known if op.startswith(f"{library}.{base}.")]
        near = difflib.get_close_matches(full, family, 1, cutoff=0) or sorted(family)
        what = f"this torch knows no overload {name}"
    else:
        near = difflib.get_close_matches(f"{library}.{base}", bases, 1)
        what = f"this torch knows no operator {name}"
    hint = f"Did you mean {near[0]}?" if near else ""
    return Problem(placed.line, placed.key, what, hint)


def _arguments(file: DeviceFile) -> list[Problem]:
    """Conditions on arguments that their operators do not have."""
    problems = []
    conditions = file.device.ops.conditions if file.device else ()
    for condition, line in zip(conditions, file.when_lines, strict=True):
        names = argument_names(condition.op)
        wanted = parse_comparison(condition.when).argument
        if names and wanted not in names:
            near = difflib.get_close_matches(wanted, names, 1)
            hint = f"Did you mean {near[0]}?" if near else f"It has {', '.join(sorted(names))}."
            what = f"{condition.op} has no argument {wanted}"
            problems.append(Problem(line, "ops.conditions.when", what, hint))
    return problems
