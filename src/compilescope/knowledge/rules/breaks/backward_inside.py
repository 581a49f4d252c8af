"""`backward()` and the optimizer inside the compiled function."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("Tensor.backward()", "Optimizer.zero_grad", "torch.autograd.backward")


def _clears(case: BreakCase) -> bool:
    """Gradients are cleared, not computed."""
    return case.says("Optimizer.zero_grad") and "backward" not in case.text


def _why(case: BreakCase) -> str:
    if _clears(case):
        return (
            f"PyTorch marks `Optimizer.zero_grad` as skipped: Dynamo does not trace `{case.text}`, "
            "and it runs between two graphs."
        )
    return (
        f"`{case.text}` needs the autograd graph of tensors that exist only after the forward has "
        "run. Dynamo traces only the forward; the backward is derived from it."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    if _clears(case):
        return [
            source(
                f"Keep `{case.text}` outside of `{case.function}`: run it in the caller, before or "
                "after the call."
            )
        ]
    return [
        source(
            f"Return the loss from `{case.function}`, and run `{case.text}` and what follows it "
            "in the caller. The backward pass of a compiled forward is compiled too."
        ),
    ]


RULE = BreakRule(
    id="backward-inside",
    category="autograd",
    order=50,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
