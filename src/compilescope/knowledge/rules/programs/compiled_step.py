"""A whole training step is compiled: backward(), the optimizer, metrics and logging with it."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.finding import is_own
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import (
    assigned,
    code,
    compiled_name,
    listed,
    modules_called,
)
from compilescope.knowledge.source.outline import CompileCall, Function, dotted
from compilescope.record.stack import Frame

_OF_SIZES = ("size-change", "size-zero-one", "size-unrolled", "equal-sizes", "parameter-size")
_READS = frozenset({"item", "tolist", "numpy"})
_TALKS = frozenset({"debug", "error", "info", "log", "print", "warning", "write"})
_MOST_SHOWN = 60
"""Letters of a statement that is named among others. Chosen."""


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if not isinstance(finding, RecompileFinding):
        return True
    return finding.is_placed and case.rule not in _OF_SIZES


def _words(case: ProgramCase) -> str:
    if case.passes("lightning", "pytorch_lightning"):
        return ""
    for frame in _frames(case):
        step = case.function_around(frame.file, frame.line, frame.function)
        backward = _backward(step) if step is not None else None
        if step is None or backward is None:
            continue
        if not _in_the_rest(case, frame, step, backward):
            return ""
        return _instead(case, step, backward)
    return ""


def _frames(case: ProgramCase) -> list[Frame]:
    """The user's lines that were compiled, innermost first. Where a step was split, what torch
    compiles of its own is called by a line of the step."""
    found = [each for each in reversed(case.traced) if is_own(each.file)]
    code, caller = case.compiled, case.caller
    if code is None or is_own(code.file) or caller is None:
        return found
    return [*found, caller] if _asked(case, caller.function) is not None else found


def _backward(step: Function) -> ast.Call | None:
    """Where a function itself calls it."""
    for node in step.own_nodes:
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and getattr(called, "attr", "") == "backward":
            return node
    return None


def _in_the_rest(case: ProgramCase, frame: Frame, step: Function, backward: ast.Call) -> bool:
    """Is the cause in what need not be compiled? Not if it is in the forward."""
    statement = _statement_at(step, frame.line)
    if statement is None:
        return False
    return (
        frame.line >= backward.lineno
        or isinstance(statement, ast.Expr)
        or any(_reads(node) for node in ast.walk(statement))
    )


def _statement_at(step: Function, line: int) -> ast.stmt | None:
    """The innermost that reaches over a line."""
    around = [
        node
        for node in step.own_nodes
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda each: each.lineno, default=None)


def _reads(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return isinstance(node.func, ast.Attribute) and node.func.attr in _READS


def _instead(case: ProgramCase, step: Function, backward: ast.Call) -> str:
    own = case.compiled is not None and is_own(case.compiled.file)
    outer = compiled_name(case) if own else step.name
    asked = _asked(case, outer)
    stays = listed(code(each) for each in _rest(step, backward))
    models = [each for each in modules_called(case, step) if each != "self"]
    if not models:
        loss = backward.func.value if isinstance(backward.func, ast.Attribute) else None
        what = dotted(loss) if loss is not None else ""
        result = f" that returns `{what}`" if what and not what.startswith("torch.") else ""
        return (
            f"Compile the forward, not `{outer}`: put what comes before {code(backward)} into a "
            f"function of its own{result}, and give torch.compile that function. Its backward is "
            f"compiled too; {code(backward)} and what follows stay in plain Python, where they cost "
            "little."
        )
    options = _options(asked)
    lines = listed(f"`{each}.compile({options})`" for each in models)
    off = ""
    if asked is not None and asked.way == "decorator":
        off = f", and take `@torch.compile` off `{outer}`"
    elif asked is not None:
        bound = assigned(case, asked.node, "").removesuffix(" = ")
        instead = f" in place of `{bound}`" if bound and bound != asked.target else ""
        off = f", take {code(asked.node)} away, and call `{asked.target}`{instead}"
    return (
        f"Compile {listed(f'`{each}`' for each in models)}, not `{outer}`: write {lines} once, before "
        f"the loop{off}. The forward and its backward are then compiled; the "
        f"rest, {stays}, stays in plain Python, where it costs little."
    )


def _asked(case: ProgramCase, name: str) -> CompileCall | None:
    found = [each for each in case.compile_calls if each.target.rpartition(".")[2] == name]
    return found[0] if len(found) == 1 else None


def _options(asked: CompileCall | None) -> str:
    if asked is None:
        return ""
    return ", ".join(f"{key}={value}" for key, value in asked.keywords if key != "disable")


def _rest(step: Function, backward: ast.Call) -> list[str]:
    """The statements that may stay in Python, in the words of their author."""
    found = [ast.unparse(backward)]
    for node in step.own_nodes:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            continue
        call = node.value
        name = dotted(call.func).rpartition(".")[2]
        text = ast.unparse(call)
        steps = name in ("step", "update") and not call.args[2:]
        if text not in found and (
            steps or name in _TALKS or any(_reads(each) for each in ast.walk(call))
        ):
            found.append(text if len(text) <= _MOST_SHOWN else f"{ast.unparse(call.func)}(…)")
    return found


RULE = ProgramRule(
    id="compiled-step",
    order=10,
    applies=_applies,
    words=_words,
)
