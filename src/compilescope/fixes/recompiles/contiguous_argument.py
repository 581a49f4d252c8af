"""A tensor is passed in one layout, whatever it came in."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch
from compilescope.fixes.source.arguments import operand, wrap_argument
from compilescope.fixes.source.guarded import cause_of
from compilescope.fixes.source.parameters import check_only_read
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    tensor, found, _ = cause_of(subject).subject.partition(".stride()[")
    if not found:
        raise NotMeant("it is not one stride of one tensor")
    check_only_read(subject, tensor)
    return Patch(
        wrap_argument(
            subject,
            tensor,
            lambda _, now: now if now.endswith(".contiguous()") else f"{operand(now)}.contiguous()",
        )
    )


FIX = Fix(
    id="contiguous-argument",
    title="pass a contiguous tensor",
    rules=frozenset({"recompile/stride-change"}),
    order=70,
    kind="source",
    why="`contiguous()` only copies a tensor with another layout. If the function changes it "
    "in place, the caller would not see that, and verification rejects the fix.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


f(torch.ones(3, 4))
f(torch.ones(4, 3).t())
""",
            good="""import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


f(torch.ones(3, 4).contiguous())
f(torch.ones(4, 3).t().contiguous())
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def f(x):
    return x.add_(2)


f(torch.ones(3, 4))
f(torch.ones(4, 3).t())
""",
            because="changes it in place",
        ),
        RefusalExample(
            program="""import torch


@torch.compile(backend="eager")
def f(xs):
    return xs[0] * 2


f([torch.ones(3, 4)])
f([torch.ones(4, 3).t()])
""",
            because="part of an argument",
        ),
    ),
)
