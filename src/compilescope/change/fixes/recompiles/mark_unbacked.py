"""A size that varies and may also be 0 or 1, which Dynamo would specialize, marked as unbacked."""

from __future__ import annotations

from compilescope.change.fixes.arguments.edits import MarkLine, dynamic_line, mark_arguments
from compilescope.change.fixes.arguments.guarded import (
    check_numbers_alone,
    numbers_seen,
    other_sizes,
    size_of,
    sizes_with,
)
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import graph_values
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant
from compilescope.record.bodies import GraphCaptured

_ASKING = frozenset({"batch_norm", "instance_norm", "interpolate"})


def _propose(subject: Subject) -> Patch:
    _, dim = size_of(subject)
    check_numbers_alone(subject)
    if not numbers_seen(subject) & {0, 1}:
        raise NotMeant("neither 0 nor 1 is among the sizes")
    backends = {body.backend for _, body in subject.program.run.of(GraphCaptured) if body.backend}
    if not subject.program.facts.seen and backends - {"eager"}:
        # A kernel that asks for the size raises, and there is no way back to eager mode then.
        raise NeedsRun("it is unknown whether every kernel works with an unknown size")
    if not subject.program.facts.seen and not subject.program.is_own(subject.file):
        raise NeedsRun("it is unknown whether the library's code works without the size")
    asking = _ASKING & {
        name.rpartition(".")[2] for name in graph_values(subject.program.run).operations
    }
    if asking and not subject.program.facts.seen:
        raise NeedsRun(
            f"`{min(asking)}` checks whether the size is 1 and may break the graph there"
        )
    marks = [(each, _unbacked_line(dim)) for each in sizes_with(subject, dim)]
    # What changed beside it would be a constant of the one graph.
    for tensor, other, numbers in other_sizes(subject):
        if other != dim:
            line = _unbacked_line(other) if numbers & {0, 1} else dynamic_line(other)
            marks.append((tensor, line))
    return Patch(mark_arguments(subject, marks))


def _unbacked_line(dim: int) -> MarkLine:
    return lambda torch, x: f"{torch}._dynamo.decorators.mark_unbacked({x}, {dim})"


FIX = Fix(
    id="mark-unbacked",
    title="mark the size as unbacked, including 0 and 1",
    rules=frozenset({"recompile/size-zero-one", "recompile/size-change"}),
    order=62,
    kind="source",
    why="An unbacked size has no special case for 0 and 1: one graph serves all. Code that "
    "branches on the size can't be traced then. Verification would report it as a new "
    "graph break.",
    propose=_propose,
)
