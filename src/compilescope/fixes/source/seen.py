"""What a name held at a line, as far as the compilations of the run tell.

A function that was compiled has told what came in, and, where it goes on after a break, what its
variables held there. That is the truth as long as no line between gives the name something else.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from compilescope.fixes.facts import ValueFact
from compilescope.fixes.source.graph_values import Incoming, graph_values
from compilescope.fixes.source.liveness import parameters, targets
from compilescope.fixes.source.module import SourceModule
from compilescope.model.run import Run

Facts = tuple[ValueFact, ...]


def seen_at(run: Run, module: SourceModule, line: int, name: str) -> Facts:
    """Empty where nobody can tell."""
    function = _function_at(module, line)
    if function is None:
        return ()
    values = graph_values(run)
    incoming = [
        each
        for each in values.incoming.get(module.path, ())
        if _is_of(module, function, each) and each.name in (name, f".{name}")
    ]
    if name not in parameters(function) and not _bindings(module, function, name):
        if "." in name:
            return _distinct(each.fact for each in incoming if each.name == name)
        return _distinct(each.fact for each in incoming if each.name == f".{name}")
    incoming = [each for each in incoming if each.name == name]
    bound = [_span(module, each) for each in _bindings(module, function, name)]
    loops = _loop_around(module, line) is not None
    near = [each.fact for each in incoming if _holds(each, line, bound, loops)]
    if near:
        return _distinct(near)
    return _from_lines(module, function, run, line, name)


def _holds(value: Incoming, line: int, bound: list[tuple[int, int]], loops: bool) -> bool:
    """Nothing is bound between where it was seen and the line."""
    if value.frame.resumed_at is None:
        return not any(loops or start < line for start, _ in bound)
    low, high = sorted((value.frame.resumed_at, line))
    return not any(low <= end and start <= high and start < high for start, end in bound)


def _from_lines(
    module: SourceModule, function: cst.FunctionDef, run: Run, line: int, name: str
) -> Facts:
    """Of the assignments that may have come before the line; nothing if one is not known."""
    loop = _loop_around(module, line)
    around = _span(module, loop) if loop is not None else (0, 0)
    found: list[ValueFact] = []
    settled = False
    for node in reversed(_bindings(module, function, name)):
        start, end = _span(module, node)
        if settled or not (end < line or around[0] <= start <= around[1]):
            continue
        facts = [
            each.fact
            for each in graph_values(run).named.get(module.path, ())
            if each.name == name and start <= each.line <= end
        ]
        if not facts:
            return ()
        found += facts
        settled = end < line and _is_always_run(module, node, line)
    return _distinct(found) if settled else ()


def _is_always_run(module: SourceModule, node: cst.CSTNode, line: int) -> bool:
    """Whoever comes to the line has come by it."""
    block = module.parent(module.statement_of(node))
    here = module.statement_at(line)
    return here is not None and any(above is block for above in module.ancestors(here))


def _loop_around(module: SourceModule, line: int) -> cst.For | cst.While | None:
    here = module.statement_at(line)
    if here is None:
        return None
    if isinstance(here, (cst.For, cst.While)):
        return here
    found = module.around(here, cst.For, cst.While)
    return found if isinstance(found, (cst.For, cst.While)) else None


def _function_at(module: SourceModule, line: int) -> cst.FunctionDef | None:
    node = module.statement_at(line)
    if node is None:
        return None
    return node if isinstance(node, cst.FunctionDef) else module.function_of(node)


def _is_of(module: SourceModule, function: cst.FunctionDef, value: Incoming) -> bool:
    frame = value.frame
    first = min([module.line(function), *map(module.line, function.decorators)])
    named = frame.function == function.name.value
    return named and first <= frame.line <= module.line(function.name)


def _bindings(module: SourceModule, function: cst.FunctionDef, name: str) -> list[cst.CSTNode]:
    """What gives the name a value, in source order."""
    return [
        each
        for each in module.walk(function.body)
        if any(module.code(target) == name for target in targets(each))
    ]


def _span(module: SourceModule, node: cst.CSTNode) -> tuple[int, int]:
    place = module.position(node)
    if isinstance(node, (cst.For, cst.AsName)):
        return place.start.line, place.start.line
    return place.start.line, place.end.line


def _distinct(facts: Iterator[ValueFact] | list[ValueFact]) -> Facts:
    return tuple(dict.fromkeys(facts))
