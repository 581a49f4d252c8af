"""`backward()` and the optimizer inside the compiled function."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("Tensor.backward()", "Optimizer.zero_grad", "torch.autograd.backward")


def _why(case: BreakCase) -> str:
    return (
        f"`{case.text}` needs the autograd graph of tensors that exist only after the forward has "
        "run. Dynamo traces only the forward; the backward is derived from it."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            f"Return the loss from `{case.function}`, and run `{case.text}` and what follows it "
            "in the caller. The backward pass of a compiled forward is compiled too."
        )
    ]


RULE = BreakRule(
    id="backward-inside",
    category="autograd",
    order=50,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
