"""Inlines the inner graph of an operation such as `cond` in place of the operation.

Only where the operands of the operation fit the inputs of the inner graph.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from msgspec.structs import replace

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.graph.candidate import GraphCandidate, cleaned, outputs_of
from compilescope.record.written_graph import (
    Arg,
    Items,
    Op,
    Ref,
    WrittenGraph,
    mapped,
    mapped_op,
)


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    for name in [op.name for op in graph.ops]:
        op = next((each for each in graph.ops if each.name == name), None)
        for inner in _graphs_of(op, graph) if op is not None else ():
            assert op is not None
            smaller = _inlined(graph, op, inner)
            if smaller is not None and (yield GraphCandidate(smaller)):
                graph = smaller
                break


def _graphs_of(op: Op, graph: WrittenGraph) -> list[str]:
    return [arg.name for arg in op.args if isinstance(arg, Ref) and arg.name in graph.graphs]


def _inlined(graph: WrittenGraph, op: Op, name: str) -> WrittenGraph | None:
    inner = graph.graphs[name]
    given = _operands(op, graph)
    wanted = [each.name for each in inner.inputs if not each.attribute]
    held = [each for each in inner.inputs if each.attribute]
    if len(given) != len(wanted) or held or inner.graphs or inner.modules:
        return None
    names: dict[str, Arg] = dict(zip(wanted, given, strict=True))
    taken = {each.name for each in graph.inputs} | {each.name for each in graph.ops}

    def change(arg: Arg) -> Arg:
        return names.get(arg.name, arg) if isinstance(arg, Ref) else arg

    ops: list[Op] = []
    for each in inner.ops:
        fresh = each.name
        while fresh in taken:
            fresh += "_"
        taken.add(fresh)
        ops.append(replace(mapped_op(each, change), name=fresh))
        names[each.name] = Ref(fresh)
    returned = mapped(inner.output, change)
    parts = list(returned.items) if isinstance(returned, Items) else [returned]
    return _in_place(graph, op, ops, parts)


def _operands(op: Op, graph: WrittenGraph) -> list[Arg]:
    """What the inner graph is called with: the last tuple, or all that follows the graphs."""
    rest = [arg for arg in op.args if not (isinstance(arg, Ref) and arg.name in graph.graphs)]
    if rest and isinstance(rest[-1], Items):
        return list(rest[-1].items)
    after = [
        at for at, arg in enumerate(op.args) if isinstance(arg, Ref) and arg.name in graph.graphs
    ]
    return list(op.args[max(after) + 1 :])


def _in_place(
    graph: WrittenGraph, op: Op, ops: Sequence[Op], parts: Sequence[Arg]
) -> WrittenGraph | None:
    """The operation's parts are what the inner graph returns."""
    replaced: dict[str, Arg] = {}
    for each in graph.ops:
        if each.target == "operator.getitem" and each.args and each.args[0] == Ref(op.name):
            at = each.args[1]
            if not isinstance(at, int) or not -len(parts) <= at < len(parts):
                return None
            replaced[each.name] = parts[at]
    if op.tensor is not None and len(parts) == 1:
        replaced[op.name] = parts[0]

    def change(arg: Arg) -> Arg:
        return replaced.get(arg.name, arg) if isinstance(arg, Ref) else arg

    position = graph.ops.index(op)
    after = [mapped_op(each, change) for each in graph.ops[position + 1 :]]
    after = [each for each in after if each.name not in replaced]
    output = mapped(graph.output, change)
    whole = replace(graph, ops=(*graph.ops[:position], *ops, *after), output=output)
    if op.name in outputs_of(whole):
        return None
    return cleaned(whole)


PASS = Pass("inner-graphs", 32, _propose)
