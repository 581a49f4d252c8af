"""Finds the step of a program: the outermost loop around its compiled code that goes on and on."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from compilescope.errors import ToolError
from compilescope.model.bodies import CompileTime
from compilescope.model.run import Run
from compilescope.model.stack import Frame
from compilescope.repair.trials.version import Version
from compilescope.tune.steps.place import StepPlace, all_loops, function_place, loops_around

ENOUGH = 16
"""Rounds of a loop from which on it may be the step: fewer can be epochs. Chosen: to settle, and
for the fewest turns that give an interval."""
_MOST_LIKELY = 64
"""Loops of a main file that are counted at once. Chosen: a mark costs a microsecond."""
_MOST = 8
"""Places that are counted. Chosen: loops nest less deeply."""


def possible_steps(run: Run, version: Version, named: str | None) -> list[StepPlace]:
    """The outermost first. Raises `ToolError` where there is none."""
    stacks = list(_stacks(run))
    if named is not None:
        return [_named_step(named, stacks, version)]
    for origins in (("user",), ("user", "library")):
        places: dict[StepPlace, None] = {}
        for stack in stacks:
            frames = [frame for frame in stack if frame.origin in origins]
            for frame in frames:
                text = version.text_of(frame.file)
                for place in loops_around(frame.file, text or "", frame.line):
                    places[place] = None
        if places:
            return list(places)[:_MOST]
    raise ToolError(
        "No loop leads to the program's compiled code, so it has no step to measure.",
        hint="Run it in a loop of some dozens of steps, or name one: --step FILE:FUNCTION.",
    )


def likely_steps(file: str) -> list[StepPlace]:
    """Before the program has run: the loops of its main file, but for those of code that is
    compiled itself, by its looks. Empty where there are too many to tell."""
    text = Version().text_of(file) or "" if file else ""
    found = [place for place in all_loops(file, text) if not _looks_compiled(place, text)]
    return found if len(found) <= _MOST_LIKELY else []


def _looks_compiled(place: StepPlace, text: str) -> bool:
    """A mark in compiled code would be a graph break of its own."""
    within = place.function.split(".")
    return "forward" in within or "__call__" in within or _is_compiled(place, text)


def choose(places: list[StepPlace], counts: list[int], wanted: int = ENOUGH) -> int:
    """The outermost that is passed often enough; else the one that is passed most often."""
    for number, count in enumerate(counts):
        if count >= wanted:
            return number
    return max(range(len(places)), key=lambda number: counts[number])


def _stacks(run: Run) -> Iterator[tuple[Frame, ...]]:
    """From the program's start to where compiled code is entered."""
    seen = set()
    for event in run.events:
        if isinstance(event.body, CompileTime) and event.stack and event.stack not in seen:
            seen.add(event.stack)
            yield event.stack


def _named_step(named: str, stacks: list[tuple[Frame, ...]], version: Version) -> StepPlace:
    name, _, function = named.rpartition(":")
    file = os.path.abspath(name)
    if not os.path.isfile(file):
        raise ToolError(f"There is no file {name}.")
    text = version.text_of(file)
    place = function_place(file, text or "", function)
    if place is None:
        raise ToolError(f"{name} has no function {function}.")
    if _is_compiled(place, text or ""):
        # A mark in it would be compiled too, so the loop around its call counts.
        for frame in (frame for stack in stacks for frame in reversed(stack)):
            loops = loops_around(frame.file, version.text_of(frame.file) or "", frame.line)
            if loops:
                return loops[-1]
    return place


def _is_compiled(place: StepPlace, text: str) -> bool:
    """By a decorator, or by its name."""
    short = place.function.rpartition(".")[2]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.lineno <= place.line <= _last_line(node):
            if node.name != short:
                continue
            return any("compile" in ast.unparse(each) for each in node.decorator_list) or (
                f"compile({short}" in text
            )
    return False


def _last_line(node: ast.FunctionDef) -> int:
    return node.end_lineno or node.lineno
