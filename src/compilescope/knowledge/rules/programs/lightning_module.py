"""A whole LightningModule is compiled: its steps, with what they log."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import is_own
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import code, listed
from compilescope.knowledge.source.outline import Function, dotted

_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric")
_STEPS = ("training_step", "validation_step", "test_step", "predict_step")


def _applies(case: ProgramCase) -> bool:
    return case.passes(*_PACKAGES)


def _words(case: ProgramCase) -> str:
    """Only where the cause is in what a step calls of Lightning: `self.log` and the like."""
    found = _step(case)
    if found is None:
        return ""
    step, line = found
    owner = step.owner
    if owner is None:
        return ""
    inner = _networks(owner)
    if not inner or not (_is_of_lightning(case) or _failed_beside(case, line, inner)):
        return ""
    asked = [each for each in case.compile_calls if each.way != "decorator"]
    module = asked[0].target if len(asked) == 1 else ""
    if module.rpartition(".")[2] in (*_STEPS, "forward"):
        module = module.rpartition(".")[0]
    module = module if module.replace(".", "").isidentifier() else ""
    holder = module or "model"
    lines = listed(f"`{holder}.{each}.compile()`" for each in inner)
    instead = f" in place of {code(asked[0].node)}" if len(asked) == 1 else ""
    text = f"`{line}`" if line else "what it logs"
    return (
        f"Compile the network inside, not the whole `{owner.name}`: write {lines}{instead}, and give "
        f"the Trainer `{holder}` itself. `{step.name}` with {text} then runs in plain Python, "
        "where the Trainer keeps its books, and costs little there."
    )


def _step(case: ProgramCase) -> tuple[Function, str] | None:
    """The step of the user's module that is on the stack, and what it calls there."""
    for frame in reversed(case.stack):
        if not is_own(frame.file):
            continue
        step = case.function_around(frame.file, frame.line, frame.function)
        if step is None or step.name not in _STEPS:
            return None
        for node in step.own_nodes:
            if (
                isinstance(node, ast.Call)
                and node.lineno == frame.line
                and dotted(node.func).startswith("self.")
            ):
                return step, f"{dotted(node.func)}(…)"
        return None
    return None


def _failed_beside(case: ProgramCase, line: str, inner: list[str]) -> bool:
    """Did compiling fail in what the step calls of its own module, and not in a network?"""
    called = line.removeprefix("self.").partition("(")[0]
    plain = isinstance(case.finding, FailureFinding) and called != ""
    return plain and called.partition(".")[0] not in inner


def _is_of_lightning(case: ProgramCase) -> bool:
    file = case.finding.file.replace("\\", "/")
    return any(f"/{name}/" in file for name in (*_PACKAGES, "torchmetrics"))


def _networks(owner: ast.ClassDef) -> list[str]:
    """The parts that the module's own methods call, and that its `__init__` makes."""
    made: set[str] = set()
    called: dict[str, None] = {}
    for method in owner.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(method):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and method.name == "__init__"
            ):
                made.add(dotted(node).removeprefix("self."))
            if isinstance(node, ast.Call) and dotted(node.func).startswith("self."):
                called[dotted(node.func).removeprefix("self.")] = None
    metrics = _metrics(owner)
    return sorted(name for name in called if name in made and name not in metrics)


def _metrics(owner: ast.ClassDef) -> set[str]:
    """Attributes on which methods of a metric are called, or that are called for a loss alone."""
    names = {
        dotted(node.func).removeprefix("self.").rpartition(".")[0]
        for node in ast.walk(owner)
        if isinstance(node, ast.Call)
        and dotted(node.func).rpartition(".")[2] in ("update", "compute", "reset")
    }
    for node in ast.walk(owner):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = dotted(node.value.func).rpartition(".")[2]
            if made.endswith(("Loss", "Accuracy", "Metric", "Score", "Error")):
                names |= {dotted(each).removeprefix("self.") for each in node.targets}
    return names


RULE = ProgramRule(
    id="lightning-module",
    order=5,
    applies=_applies,
    words=_words,
    of_failures=True,
)
