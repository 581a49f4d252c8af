"""`backward()` and the optimizer inside the compiled function."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, config, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    return cause.says("Tensor.backward()", "Optimizer.zero_grad", "torch.autograd.backward")


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` works on the autograd graph of tensors that exist only once the forward has run; "
        "Dynamo traces the forward alone and lets the backward follow by itself."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    remedies = [
        source(
            f"Compile the part up to the loss only: let `{cause.function}` return it and do `{cause.text}` "
            "outside. The backward of a compiled forward is compiled too."
        )
    ]
    if cause.says("trace_autograd_ops"):
        remedies.append(
            config(
                "`torch._dynamo.config.trace_autograd_ops = True` traces it into the graph; new in torch "
                "2.13 and not for every case, so compare the gradients."
            )
        )
    return remedies


RULE = BreakRule(
    id="backward-inside",
    category="autograd",
    order=50,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

w = torch.ones(3, requires_grad=True)

def step(x):
    loss = (x * w).sum()
    loss.backward()
    return loss

torch.compile(step, backend="eager")(torch.ones(3))
""",
            good="""import torch

w = torch.ones(3, requires_grad=True)

def step(x):
    loss = (x * w).sum()
    return loss

torch.compile(step, backend="eager")(torch.ones(3)).backward()
""",
            configured="""import torch

w = torch.ones(3, requires_grad=True)

def step(x):
    loss = (x * w).sum()
    loss.backward()
    return loss.detach()

with torch._dynamo.config.patch(trace_autograd_ops=True):
    torch.compile(step, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
