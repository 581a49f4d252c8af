"""What a run lost to breaks, recompiles and fallbacks, counted.

Operators of a function count once, by its largest graph: how often it was compiled is no gain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from compilescope.base.errors import ToolError
from compilescope.base.patterns import late
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.guarded_graphs import guarded_graphs
from compilescope.record.bodies import GraphCaptured
from compilescope.record.fix_search import Losses
from compilescope.record.graph import Graph, Node, decode_graph
from compilescope.record.guards import readable
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, origin_of

_ON_DATA = late(r"\.(?:item|tolist)\(\)[^=!<>]{0,200}==")


def count_operators(run: Run, *, need_graph: bool = False) -> int:
    """Operators that Dynamo captured, those in the branches of a `cond` too.

    Each piece of a function counts once: by its largest graph, however often it was compiled. A
    function that was inlined twice counts twice, as the graph has it. `need_graph`: without what
    is as quick outside of one: Python numbers, and the step of torch's optimizers.
    """
    largest: dict[object, int] = {}
    for number, (body, graph) in enumerate(_graphs(run)):
        if need_graph and body.frame is not None and "/torch/optim/" in body.frame.file:
            continue
        key: object = body.frame if body.frame is not None else number
        nodes = operators(graph) if graph is not None else ()
        ops = sum(1 for node in nodes if not (need_graph and _is_number(node)))
        largest[key] = max(largest.get(key, 0), ops if graph is not None else body.ops or 0)
    return sum(largest.values())


_PYTHON = ("_operator", "operator", "math", "builtins")
"""Modules whose functions give numbers of numbers."""


def captured_lines(
    run: Run,
    *,
    newest: bool = False,
    but: Collection[tuple[str, int]] = (),
    numbers: bool = True,
) -> dict[tuple[str, int], str]:
    """The lines of which operators were captured, and the function of each. `newest`: only by the
    last compilation of each piece, as the first call may do what no other does. `but`: operators
    of these lines do not count, for the lines that call them neither. `numbers`: also those that
    give a Python number. What gives nothing (a check, a custom operator that writes) counts."""
    graphs = list(_graphs(run))
    if newest:
        last = {body.frame or number: graph for number, (body, graph) in enumerate(graphs)}
        kept = {id(graph) for graph in last.values()}
        graphs = [(body, graph) for body, graph in graphs if id(graph) in kept]
    found: dict[tuple[str, int], str] = {}
    for _, graph in graphs:
        if graph is None:
            continue
        for node in operators(graph):
            if node.frame is not None and (node.frame.file, node.frame.line) in but:
                continue
            if not numbers and _is_number(node):
                continue
            if node.frame is not None:
                found[node.frame.file, node.frame.line] = node.frame.function
            if node.stack is not None and node.stack < len(graph.stacks):
                for frame in graph.stacks[node.stack]:
                    found.setdefault((frame.file, frame.line), frame.function)
    return found


def _is_number(node: Node) -> bool:
    """Does it give a number that Python computes as well: a size, a sum of sizes, `x.item()`?"""
    if not node.no_tensor:
        return False
    head, _, name = node.target.rpartition(".")
    return node.op == "call_method" or head in _PYTHON or name.startswith("sym_")


def compiled_functions(run: Run) -> set[CodeRef]:
    """The functions of which some part was compiled as a frame of its own."""
    return {
        CodeRef(body.frame.file, body.frame.line, body.frame.function)
        for body, _ in _graphs(run)
        if body.frame is not None
    }


def guards_on_data(run: Run) -> Iterator[str]:
    """The conditions that tie a graph to a number read out of a tensor: `n.item() == 3`."""
    for graph in guarded_graphs(run):
        for guard in graph.all:
            yield from filter(is_on_data, guard.checks)


def is_on_data(check: str) -> bool:
    """Is it of a number out of a tensor? Of a Python number that is dynamic (an attribute, an
    argument) Dynamo makes a tensor to read it from: that is none. What a break left on the stack
    may be."""
    return bool(_ON_DATA.search(check if "___stack" in check else readable(check)))


def has_symbolic_sizes(run: Run) -> bool:
    """Was anything compiled for more than one size?"""
    return any(
        isinstance(size, str)
        for _, graph in _graphs(run)
        if graph is not None
        for node in graph.nodes
        if node.op == "placeholder"
        for tensor in node.outputs
        for size in tensor.shape
    )


def operators(graph: Graph) -> Iterator[Node]:
    """Nodes that compute, also within others."""
    for node in graph.nodes:
        if node.op.startswith("call_"):
            yield node
        for inner in node.graphs:
            yield from operators(inner)


def losses_of(digest: Digest, ops: int, *, distinct: bool = False) -> Losses:
    """`distinct`: a line that stands twice in a function, as a fix may write it, breaks once."""
    breaks = {site.fingerprint for site in digest.sites} if distinct else digest.sites
    return Losses(
        breaks=len(breaks),
        recompiles=sum(frame.count for frame in digest.recompiles),
        graphs=digest.graphs,
        operators=ops,
        eager=len(digest.eager_frames),
        failures=len(digest.failures),
        needed=sum(frame.count - frame.avoidable for frame in digest.recompiles),
    )


def _graphs(run: Run) -> Iterator[tuple[GraphCaptured, Graph | None]]:
    for _, body in run.of(GraphCaptured):
        if body.stage == "dynamo" and not _is_pythons_own(body):
            yield body, _graph(run, body)


def _is_pythons_own(body: GraphCaptured) -> bool:
    """Formatting a tensor for a log may be compiled too: nobody's loss if it no longer is."""
    return body.frame is not None and origin_of(body.frame.file) == "stdlib"


def _graph(run: Run, body: GraphCaptured) -> Graph | None:
    if body.graph is None:
        return None
    try:
        text = run.artifacts.get(body.graph)
        return decode_graph(text) if text is not None else None
    except (ToolError, ValueError):
        return None


def same_losses(one: Digest, other: Digest) -> bool:
    """Did two runs of one version lose the same?"""
    names = [sorted(found.fingerprint for found in findings(digest)) for digest in (one, other)]
    return names[0] == names[1]
