"""Runs constraints over a graph: breaches with their places, and constraints that fail themselves.

Each breach has a line of the user's where the graph knows any. A constraint is a plugin: one that
raises is reported as something that could not be told, and the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.plugins import discover
from compilescope.knowledge.rules import constraints as rules
from compilescope.knowledge.rules.hardware.constraint import (
    Breach,
    Constraint,
    ConstraintRule,
    listed,
    shown_op,
    values,
)
from compilescope.knowledge.rules.hardware.operands import note_unasked
from compilescope.record.device import Device
from compilescope.record.graph import Graph, Node
from compilescope.record.graphs.completion import complete
from compilescope.record.graphs.user_lines import user_lines
from compilescope.record.stack import Frame

_LONGEST = 300
"""Letters of what a constraint raised. Chosen: a few lines; it is told, not debugged there."""


def all_rules() -> list[ConstraintRule]:
    return discover(rules, "RULE", ConstraintRule)


def constraints_of(device: Device) -> list[Constraint]:
    """All that a device asks for."""
    return [made for rule in all_rules() for made in rule.make(device)]


def check_graph(
    graph: Graph, constraints: Sequence[Constraint], *, called_at: Frame | None = None
) -> list[Breach]:
    """Every breach of the graph and of the graphs within it, each fact once, in order of rule.

    `called_at` is the line that a breach is put on where the graph knows of none that is not
    torch's own: a compiled `nn.Sequential` is called from there.
    """
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise ToolError(_misuse(constraint))
    found = _check(note_unasked(complete(graph)), constraints, called_at)
    return list({_fact(breach): breach for breach in found}.values())


def _misuse(given: object) -> str:
    if isinstance(given, type) and issubclass(given, Constraint):
        return f"{given.__name__} is a class; pass an instance: {given.__name__}()."
    return (
        f"{given!r} is not a constraint: it must be an instance of a compilescope.Constraint "
        "subclass."
    )


def _check(
    graph: Graph,
    constraints: Sequence[Constraint],
    called_at: Frame | None,
    *,
    within: bool = False,
) -> Iterator[Breach]:
    places = user_lines(graph, called_at)
    for constraint in constraints:
        for breach in _guarded(constraint, graph, within):
            yield _placed(breach, places, called_at)
    for node in graph.nodes:
        for inner in node.graphs:
            yield from _check(note_unasked(inner), constraints, places.get(node.name), within=True)


def _placed(breach: Breach, places: dict[str, Frame], called_at: Frame | None) -> Breach:
    own = breach.frame if breach.frame is not None and breach.frame.origin != "torch" else None
    place = places.get(breach.node) or own or called_at
    return breach if place is breach.frame else msgspec.structs.replace(breach, frame=place)


def _fact(breach: Breach) -> tuple[object, ...]:
    at = (breach.frame.file, breach.frame.line) if breach.frame else None
    return breach.rule, breach.severity, breach.node, breach.op, breach.found, breach.allowed, at


def _guarded(constraint: Constraint, graph: Graph, within: bool) -> Iterator[Breach]:
    """What a constraint says, and how it failed."""
    by_node = type(constraint).check_node is not Constraint.check_node
    if type(constraint).check is Constraint.check or (within and by_node):
        # What it says of a graph as a whole, it says of the outermost one.
        yield from _by_node(constraint, graph)
        return
    try:
        for breach in listed(constraint.check(graph)):
            yield _sound(breach)
    except Exception as error:  # The border to a plugin.
        yield _failure(constraint, error, 1)


def _by_node(constraint: Constraint, graph: Graph) -> Iterator[Breach]:
    """A node at which it fails does not keep it from the next."""
    failed: dict[str, tuple[Exception, Node, int]] = {}
    for node in values(graph):
        try:
            # A breach that was made before it failed still counts.
            for breach in listed(constraint.check_node(node)):
                yield _sound(breach)
        except Exception as error:  # The border to a plugin.
            first, at, times = failed.get(type(error).__name__, (error, node, 0))
            failed[type(error).__name__] = (first, at, times + 1)
    for first, at, times in failed.values():
        yield _failure(constraint, first, times, at)


def _sound(breach: object) -> Breach:
    if not isinstance(breach, Breach):
        raise TypeError(f"it returned {type(breach).__name__} {breach!r}, not a Breach")
    return breach


def _failure(
    constraint: Constraint, error: Exception, times: int, node: Node | None = None
) -> Breach:
    words = " ".join(str(error).split())[:_LONGEST]
    said = f"{type(error).__name__}: {words}" if words else type(error).__name__
    more = f", here and at {times - 1} more nodes" if times > 1 else ""
    return Breach(
        rule=constraint.name,
        node=node.name if node else "",
        op=shown_op(node) if node else "",
        found=f"the constraint {type(constraint).__name__} failed with {said}{more}",
        allowed="unknown, because it failed",
        remedy=f"Fix {type(constraint).__name__}; until then, this can't be checked.",
        severity="unknown",
        frame=node.frame if node else None,
    )
