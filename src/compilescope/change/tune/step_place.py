"""A place in the user's source that is passed once a step: the body of a loop, or of a function.
Which places of a program may be its step, and which of them is, is asked here too.

It is found again in a text that was changed elsewhere: by its function, and by how the loop begins.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from compilescope.base.errors import ToolError
from compilescope.knowledge.source.refusals import Refused

if TYPE_CHECKING:
    from compilescope.change.repair.trials.version import Version
    from compilescope.record.run import Run
    from compilescope.record.stack import Frame

ENOUGH = 16
"""Rounds of a loop from which on it may be the step: fewer can be epochs. Chosen: to settle, and
for the fewest turns that give an interval."""
_MOST_LIKELY = 64
"""Loops of a main file that are counted at once. Chosen: a mark costs a microsecond."""
_MOST, _MOST_WAYS = 8, 16
"""Places on a way to compiled code, and ways. Chosen: loops nest less deeply, and few programs call
what they compile from so many lines."""
MARK = "__compilescope_step__"
"""What a mark calls. A name among the builtins, so that no import is needed."""
RETURNED = " returned in call "
"""In the name of what a compiled call gave, among the numbers of a step."""
_Loop = ast.For | ast.While | ast.AsyncFor
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class StepPlace(msgspec.Struct, frozen=True):
    """Where a step begins."""

    file: str
    line: int
    function: str
    """Its qualified name; empty at module level."""
    head: str = ""
    """`for x in data`; empty where it is the function itself."""
    nth: int = 0
    """Of the loops that begin like this in that function."""
    way: int = 0
    """Only rounds that are come to by this way, a number of `counted_rounds`; 0: all."""

    @property
    def words(self) -> str:
        return f"{self.function} at" if not self.head else "the loop at"


Chain = tuple[StepPlace, ...]
"""Places within each other, outermost first."""


def all_loops(file: str, text: str) -> list[StepPlace]:
    """An outer one comes before those within it."""
    try:
        return [place for _, place in _loops(file, ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError):
        return []


def loops_around(file: str, text: str, line: int) -> list[StepPlace]:
    """The loops around a line that belong to the same function, the outermost first."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = [
        (node, place)
        for node, place in _loops(file, tree)
        if node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
    ]
    inmost = max((place.function for _, place in found), key=len, default="")
    return [place for _, place in found if place.function == inmost]


def function_place(file: str, text: str, name: str) -> StepPlace | None:
    """The function of that name, or of that qualified name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node, qualified in _functions(tree):
        if name in (qualified, node.name):
            return StepPlace(file, node.lineno, qualified)
    return None


def marked(text: str, places: Sequence[StepPlace]) -> str:
    """The text with a mark at each place, that says its number. Raises `Refused`."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    marks: list[tuple[int, int, str]] = []
    for number, place in enumerate(places):
        node = _node_of(tree, place)
        if node is None:
            raise Refused(f"the change hides the step of line {place.line}")
        first = _first_statement(node)
        top = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
        way = f", {place.way}" if place.way else ""
        marks.append((top, _column(lines[first.lineno - 1], first), f"{MARK}({number}{way})"))
    for line, column, call in sorted(marks, reverse=True):
        before = lines[line - 1][:column]
        if before.strip():  # `for x in data: step(x)`.
            lines[line - 1] = f"{before}{call}; {lines[line - 1][column:]}"
        else:
            lines.insert(line - 1, f"{before}{call}\n")
    made = "".join(lines)
    ast.parse(made)
    return made


def _column(line: str, node: ast.stmt) -> int:
    """In letters; `ast` counts bytes."""
    return len(line.encode()[: node.col_offset].decode())


def _first_statement(node: _Loop | _Function) -> ast.stmt:
    first = node.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documented = isinstance(node, _Function) and text and len(node.body) > 1
    return node.body[1] if documented else first


def _node_of(tree: ast.Module, place: StepPlace) -> _Loop | _Function | None:
    if not place.head:
        return next((n for n, name in _functions(tree) if name == place.function), None)
    for node, other in _loops(place.file, tree):
        if (other.function, other.head, other.nth) == (place.function, place.head, place.nth):
            return node
    return None


def _loops(file: str, tree: ast.Module) -> Iterator[tuple[_Loop, StepPlace]]:
    """An outer one comes before those within it."""
    seen: dict[tuple[str, str], int] = {}
    for node, function in _walk(tree, ""):
        if isinstance(node, _Loop):
            head = _head(node)
            nth = seen.get((function, head), 0)
            seen[function, head] = nth + 1
            yield node, StepPlace(file, node.lineno, function, head, nth)


def _functions(tree: ast.Module) -> Iterator[tuple[_Function, str]]:
    for node, around in _walk(tree, ""):
        if isinstance(node, _Function):
            yield node, f"{around}.{node.name}" if around else node.name


def _walk(node: ast.AST, around: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        yield child, around
        named = isinstance(child, (*_Function.__args__, ast.ClassDef))
        inner = (f"{around}.{child.name}" if around else child.name) if named else around  # type: ignore[attr-defined]
        yield from _walk(child, inner)


def _head(node: _Loop) -> str:
    if isinstance(node, ast.While):
        return f"while {ast.unparse(node.test)}"
    return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"


# Finds the step of a program: the outermost loop around its compiled code that goes on and on.


def possible_steps(run: Run, version: Version, named: str | None) -> Iterator[list[Chain]]:
    """The places on each way to compiled code, outermost first: at first loops of the user's own,
    then those of libraries too, then functions that are called from elsewhere. The next ones count
    only where no place of those before is passed often enough."""
    stacks = list(_stacks(run))
    if named is not None:
        yield [(_named_step(named, stacks, version),)]
        return
    told: list[Chain] = []
    for origins in (("user",), ("user", "library")):
        chains = _distinct(_loops_of(stack, origins, version) for stack in stacks)
        if chains and chains != told:
            yield chains
        told = chains or told
    called = _distinct(_function_of(stack, version) for stack in stacks)
    if called:
        yield called


def _distinct(chains: Iterable[Chain]) -> list[Chain]:
    return list(dict.fromkeys(chain for chain in chains if chain))[:_MOST_WAYS]


def _loops_of(stack: Sequence[Frame], origins: Sequence[str], version: Version) -> Chain:
    found = [
        place
        for frame in stack
        if frame.origin in origins
        for place in loops_around(frame.file, version.text_of(frame.file) or "", frame.line)
    ]
    return tuple(found[:_MOST])


def _function_of(stack: Sequence[Frame], version: Version) -> Chain:
    """The outermost function of the user's below code of others: what calls it repeats it. Else the
    inmost: who calls it may be torch, or Python itself."""
    own = [frame for frame in stack if frame.origin == "user" and frame.function != "<module>"]
    for frame in reversed(own):
        text = version.text_of(frame.file) or ""
        place = _function_around(frame.file, text, frame.line)
        if place is not None and not _is_compiled(place, text):
            return (place,)
    return ()


def _function_around(file: str, text: str, line: int) -> StepPlace | None:
    try:
        functions = list(_functions(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    around = [
        (node, name)
        for node, name in functions
        if node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
    ]
    return StepPlace(file, around[-1][0].lineno, around[-1][1]) if around else None


def likely_steps(file: str) -> list[StepPlace]:
    """Before the program has run: the loops of its main file, but for those of code that is
    compiled itself, by its looks. Empty where there are too many to tell."""
    from compilescope.change.repair.trials.version import Version

    text = Version().text_of(file) or "" if file else ""
    found = [place for place in all_loops(file, text) if not _looks_compiled(place, text)]
    return found if len(found) <= _MOST_LIKELY else []


def _looks_compiled(place: StepPlace, text: str) -> bool:
    """A mark in compiled code would be a graph break of its own."""
    within = place.function.split(".")
    return "forward" in within or "__call__" in within or _is_compiled(place, text)


class Laps(NamedTuple):
    """Of a place, counted."""

    passed: int
    ms: float = 0.0
    """How long one usually takes, nothing being compiled."""
    way: int = 0
    """Of several the one in whose rounds the program spends most, which alone count; 0: of one."""


def choose(
    chains: Sequence[Chain], rounds: Mapping[StepPlace, Laps], wanted: int = ENOUGH
) -> StepPlace:
    """Of each way the outermost place that is passed often enough, and of these the one in which
    the program spends most: a loop that warms up, or evaluates, is not its step. Else the one that
    is passed most often."""
    outermost = [
        next((place for place in chain if rounds[place].passed >= wanted), None) for chain in chains
    ]
    found = [place for place in outermost if place is not None]
    if found:
        return max(found, key=lambda place: (rounds[place].ms or 1.0) * rounds[place].passed)
    every = [place for chain in chains for place in chain]
    return max(every, key=lambda place: rounds[place].passed)


def _stacks(run: Run) -> Iterator[tuple[Frame, ...]]:
    """From the program's start to where compiled code is entered: where it was compiled, and now
    and then later."""
    # The user's process, in which steps are marked, has no use for records.
    from compilescope.record.bodies import CompileTime, RegionCalls

    seen = set()
    for event in run.events:
        if isinstance(event.body, CompileTime | RegionCalls) and event.stack not in seen:
            seen.add(event.stack)
            if event.stack:
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
