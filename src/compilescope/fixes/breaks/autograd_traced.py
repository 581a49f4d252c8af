"""The flag with which Dynamo traces `torch.autograd.grad` into the graph."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample
from compilescope.fixes.patch import Patch
from compilescope.fixes.source.flags import with_flag
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    return with_flag(subject, "trace_autograd_ops", True)


FIX = Fix(
    id="autograd-traced",
    title="take gradients inside the graph (trace_autograd_ops)",
    rules=frozenset({"GB9186", "GB8985", "GB0123"}),
    order=130,
    kind="config",
    why="With the flag (new in torch 2.13) the call of `torch.autograd.grad` or `backward` is part "
    "of the graph, and so is what it computes.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def force(x):
    x = x.detach().requires_grad_()
    energy = (x**2).sum()
    (slope,) = torch.autograd.grad(energy, x)
    return -slope


compiled = torch.compile(force, backend="eager")
compiled(torch.ones(3))
""",
            good="""import torch


def force(x):
    x = x.detach().requires_grad_()
    energy = (x**2).sum()
    (slope,) = torch.autograd.grad(energy, x)
    return -slope


compiled = torch._dynamo.config.patch(trace_autograd_ops=True)(torch.compile(force, backend="eager"))
compiled(torch.ones(3))
""",
        ),
    ),
)
