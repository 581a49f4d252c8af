"""`backward()` and the optimizer inside the compiled function."""

from __future__ import annotations

import ast

from compilescope.findings.remedy import Remedy, program, source
from compilescope.rules.causes.rule import BreakCase, BreakRule


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
        program(_compile_the_model(case)),
        source(
            f"Return the loss from `{case.function}`, and run `{case.text}` and what follows it "
            "in the caller. The backward pass of a compiled forward is compiled too."
        ),
    ]


def _compile_the_model(case: BreakCase) -> str:
    model = _model_of(case)
    step = case.function
    if not model:
        return (
            f"Compile the model, not `{step}`: its forward is then one graph and its backward "
            "another; the optimizer, metrics and logging stay in Python, where they cost little."
        )
    return (
        f"Compile `{model}`, not `{step}`: write `{model} = torch.compile({model})` before the loop "
        f"and take `torch.compile` off `{step}`. The forward is then one graph and its backward "
        "another; the optimizer, metrics and logging stay in Python, where they cost little."
    )


def _model_of(case: BreakCase) -> str:
    """The first thing that the function calls by a plain name that it is given or finds outside,
    and not a class or a function of the file; empty where that is not one name."""
    function = case.spot.function
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    given = {each.arg for each in [*function.args.args, *function.args.kwonlyargs]}
    calls = [node.func.id for node in ast.walk(function)
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]  # fmt: skip
    named = [name for name in calls if name in given]
    named = named or [name for name in calls if name in _MODELS]
    return named[0] if len(set(named)) == 1 else ""


_MODELS = ("model", "net", "network", "module")
"""What a model is mostly called where it is no argument. Chosen."""


RULE = BreakRule(
    id="backward-inside",
    category="autograd",
    order=50,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
