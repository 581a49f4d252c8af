"""A size that varies is marked so before the call, so that the first graph fits all sizes."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.arguments import mark_arguments
from compilescope.fixes.source.guarded import (
    check_no_parameter,
    numbers_seen,
    size_of,
    sizes_with,
)
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    _, dim = size_of(subject)
    check_no_parameter(subject)
    if numbers_seen(subject) & {0, 1}:
        raise Refused("sizes 0 and 1 are compiled separately, marked or not")
    return Patch(
        mark_arguments(
            subject,
            sizes_with(subject, dim),
            lambda torch, x: f"{torch}._dynamo.maybe_mark_dynamic({x}, {dim})",
        )
    )


FIX = Fix(
    id="mark-dynamic",
    title="mark the size as dynamic",
    rules=frozenset({"recompile/size-change", "recompile/equal-sizes"}),
    order=60,
    kind="source",
    why="`maybe_mark_dynamic` only tells Dynamo that one size of one tensor may vary. Unlike "
    "`mark_dynamic`, it never raises if the code needs the number after all.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def norm(x, weight):
    return x / x.sum() * weight


weight = torch.ones(4)
for size in (3, 5, 7):
    rows = torch.ones(size, 4)
    # One batch
    print(norm(rows, weight=weight).sum())  # a row each
""",
            good="""import torch


@torch.compile(backend="eager")
def norm(x, weight):
    return x / x.sum() * weight


weight = torch.ones(4)
for size in (3, 5, 7):
    rows = torch.ones(size, 4)
    # One batch
    torch._dynamo.maybe_mark_dynamic(rows, 0)
    print(norm(rows, weight=weight).sum())  # a row each
""",
        ),
        FixExample(
            bad="""import torch as th


class Net(th.nn.Module):
    def forward(self, batch):
        return batch["x"] * 2


net = Net()
net.compile(backend="eager")
for size in (3, 5, 7):
    net({"x": th.ones(2, size)})
""",
            good="""import torch as th


class Net(th.nn.Module):
    def forward(self, batch):
        return batch["x"] * 2


net = Net()
net.compile(backend="eager")
for size in (3, 5, 7):
    batch = {"x": th.ones(2, size)}
    th._dynamo.maybe_mark_dynamic(batch['x'], 1)
    net(batch)
""",
            note="the argument has no name of its own",
        ),
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def loss(x, y):
    return (x.sum(1) - y).abs().mean()


for size in (8, 8, 5):
    print(loss(torch.ones(size, 3), torch.zeros(size)))
""",
            good="""import torch


@torch.compile(backend="eager")
def loss(x, y):
    return (x.sum(1) - y).abs().mean()


for size in (8, 8, 5):
    x = torch.ones(size, 3)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    y = torch.zeros(size)
    torch._dynamo.maybe_mark_dynamic(y, 0)
    print(loss(x, y))
""",
            note="two sizes that are equal vary together or not at all",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


for size in (3, 5, 1):
    f(torch.ones(size))
""",
            because="sizes 0 and 1",
        ),
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


out = [f(torch.ones(size)) for size in (3, 5)]
""",
            because="many times or never",
        ),
    ),
)
