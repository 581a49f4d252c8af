"""A size that may be 0 or 1 as well is marked as not known at all."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NeedsRun, NotMeant, Patch
from compilescope.fixes.source.arguments import mark_argument
from compilescope.fixes.source.guarded import numbers_seen, size_of
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import GraphCaptured


def _propose(subject: Subject) -> Patch:
    tensor, dim = size_of(subject)
    if not numbers_seen(subject) & {0, 1}:
        raise NotMeant("neither 0 nor 1 is among the sizes")
    backends = {body.backend for _, body in subject.program.run.of(GraphCaptured) if body.backend}
    if not subject.program.facts.seen and backends - {"eager"}:
        # A kernel that asks for the size raises, and there is no way back to eager mode then.
        raise NeedsRun("whether every kernel can do with a size that is not known cannot be told")
    return Patch(
        mark_argument(
            subject,
            tensor,
            lambda torch, x: f"{torch}._dynamo.decorators.mark_unbacked({x}, {dim})",
        )
    )


FIX = Fix(
    id="mark-unbacked",
    title="mark the size as unknown, 0 and 1 included",
    rules=frozenset({"recompile/size-zero-one", "recompile/size-change"}),
    order=62,
    kind="source",
    why="An unbacked size has no special case for 0 and 1: one graph serves all. Code that branches "
    "on the size cannot be traced then, which the verification would see as a new break.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def f(x, w):
    return (x @ w).relu()


w = torch.ones(4, 4)
for size in (1, 5, 7, 0):
    x = torch.ones(size, 4)
    f(x, w)
""",
            good="""import torch


@torch.compile(backend="eager")
def f(x, w):
    return (x @ w).relu()


w = torch.ones(4, 4)
for size in (1, 5, 7, 0):
    x = torch.ones(size, 4)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    f(x, w)
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


for size in (3, 5):
    x = torch.ones(size)
    f(x)
""",
            because="neither 0 nor 1",
        ),
    ),
)
