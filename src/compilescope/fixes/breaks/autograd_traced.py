"""The flag with which Dynamo traces `torch.autograd.grad` into the graph."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.flags import with_flag
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    if "leaked" in subject.finding.title and _keeps_graph(subject):
        raise Refused("with `create_graph=True` the result still depends on the gradient's graph")
    return with_flag(subject, "trace_autograd_ops", True)


def _keeps_graph(subject: Subject) -> bool:
    return any(
        isinstance(node, cst.Arg)
        and node.keyword is not None
        and node.keyword.value == "create_graph"
        and subject.module.code(node.value) != "False"
        for node in subject.module.walk(subject.function.body)
    )


FIX = Fix(
    id="autograd-traced",
    title="compute gradients inside the graph (trace_autograd_ops)",
    rules=frozenset({"GB9186", "GB8985", "GB0123"}),
    order=130,
    kind="config",
    why="With this flag (new in torch 2.13), calls to `torch.autograd.grad` and `backward`, "
    "and what they compute, are part of the graph.",
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
