"""A metric is updated in compiled code: one of torchmetrics, or a list of numbers on the module."""

from __future__ import annotations

import ast
from typing import NamedTuple

from compilescope.knowledge.findings.finding import is_own
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import code, listed
from compilescope.knowledge.rules.recompiles._subjects import shown
from compilescope.knowledge.source.hooks import is_hook
from compilescope.knowledge.source.outline import Function, dotted, names_in

_KEEPS = frozenset({"add", "append", "appendleft", "extend", "update"})
_READS = frozenset({"item", "tolist"})


def _applies(case: ProgramCase) -> bool:
    if "/torchmetrics/" in case.finding.file.replace("\\", "/"):
        return True
    return case.rule in ("length-change", "scalar-extraction")


def _words(case: ProgramCase) -> str:
    if "/torchmetrics/" not in case.finding.file.replace("\\", "/"):
        return _of_history(case)
    frame = next((each for each in reversed(case.traced) if is_own(each.file)), None)
    if frame is not None:
        function = case.function_around(frame.file, frame.line, frame.function)
    else:
        ref = case.compiled
        function = (
            case.function_around(ref.file, ref.line, ref.function) if ref is not None else None
        )
    if function is None:
        return ""
    updates = _updates(function)
    if not updates:
        return ""
    given = _given(function, updates)
    result = (
        f"return {listed(f'`{each}`' for each in given)} from `{function.name}` as well, and "
        if given
        else ""
    )
    lines = listed(code(each) for each in updates)
    return (
        f"Update metrics outside of what is compiled: they count in Python numbers and look at "
        f"values. For that, {result}do {lines} in the caller, after the call."
    )


def _updates(function: Function) -> list[ast.Call]:
    """Statements of the function that feed a metric and use nothing of what it gives."""
    statements = [node for node in function.own_nodes if isinstance(node, ast.Expr)]
    calls = [each.value for each in statements if isinstance(each.value, ast.Call)]
    return [each for each in calls if dotted(each.func).endswith(".update")]


def _given(function: Function, updates: list[ast.Call]) -> list[str]:
    """What the function computes, does not return yet, and a metric needs."""
    nodes = function.own_nodes
    made = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    returned: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            returned |= {each.id for each in parts if isinstance(each, ast.Name)}
    needed = [name for call in updates for each in call.args for name in sorted(names_in(each))]
    return list(dict.fromkeys(name for name in needed if name in made - returned))


class _Kept(NamedTuple):
    """A number that is read from a tensor and put into something that outlives the call."""

    statement: ast.stmt
    holder: str
    reading: ast.Call


def _of_history(case: ProgramCase) -> str:
    finding = case.finding
    if finding.file not in case.own_files:
        return ""
    function = case.function_around(finding.file, finding.line, finding.function)
    if function is None or function.owner is None or is_hook(function, case.outlines):
        return ""
    if any(getattr(each, "attr", "") == "backward" for each in function.own_nodes):
        return ""
    kept = [each for each in _kept(function) if _is_meant(case, each)]
    if not kept:
        return ""
    tensors = listed(code(_tensor(each)) for each in kept)
    lines = listed(code(each.statement) for each in kept)
    holders = listed(f"`{name}`" for name in dict.fromkeys(each.holder for each in kept))
    reads = listed(code(each.reading) for each in kept)
    return (
        f"{reads} is only kept in {holders}: keep such records outside of what is compiled. Return "
        f"{tensors} from `{function.name}` as well, and do {lines} in the caller, after the "
        f"call{_or_alone(case, function)}."
    )


def _kept(function: Function) -> list[_Kept]:
    found = []
    for node in function.own_nodes:
        holder, value = _put(node)
        if holder is None or value is None or not isinstance(node, ast.stmt):
            continue
        if not dotted(_root(holder)).startswith("self"):
            continue
        reading = _reading(function, value)
        if reading is not None:
            found.append(_Kept(node, ast.unparse(holder), reading))
    return found


def _put(node: ast.AST) -> tuple[ast.expr | None, ast.expr | None]:
    """Into what a statement puts which value."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPS and call.args:
            return call.func.value, call.args[-1]
    if isinstance(node, ast.AugAssign):
        return node.target, node.value
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            return target, node.value
    return None, None


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _reading(function: Function, value: ast.expr) -> ast.Call | None:
    """The read itself, or what the name was given that is used for nothing else."""
    if _is_reading(value):
        return value if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Name):
        return None
    nodes = function.own_nodes
    given = [
        each.value
        for each in nodes
        if isinstance(each, ast.Assign)
        and any(isinstance(one, ast.Name) and one.id == value.id for one in each.targets)
    ]
    uses = [
        each
        for each in nodes
        if isinstance(each, ast.Name) and each.id == value.id and isinstance(each.ctx, ast.Load)
    ]
    put = sum(_put(each)[1] is not None and _names(_put(each)[1], value.id) for each in nodes)
    if len(given) != 1 or len(uses) != put or not isinstance(given[0], ast.Call):
        return None
    return given[0] if _is_reading(given[0]) else None


def _names(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_reading(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
        return True
    return dotted(node.func) in ("float", "int") and len(node.args) == 1


def _tensor(kept: _Kept) -> ast.expr:
    call = kept.reading
    if isinstance(call.func, ast.Attribute) and call.func.attr in _READS:
        return call.func.value
    return call.args[0]


def _is_meant(case: ProgramCase, kept: _Kept) -> bool:
    """Is the cause the read, or the length of what it is put into?"""
    finding = case.finding
    if isinstance(finding, RecompileFinding):
        counted = shown(finding.subject).partition(" != ")[0]
        return counted == f"len({kept.holder})"
    last = kept.reading.end_lineno or kept.reading.lineno
    return kept.reading.lineno <= finding.line <= last


def _or_alone(case: ProgramCase, function: Function) -> str:
    """The network inside, where a method calls one and the program compiles the object around."""
    asked = case.compile_call
    if asked is None or asked.way == "decorator" or function.name != "forward":
        return ""
    holder = asked.target if asked.target.replace(".", "").isidentifier() else ""
    assert function.owner is not None
    made = {
        dotted(each).removeprefix("self.")
        for each in ast.walk(function.owner)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    called = {
        dotted(each.func).removeprefix("self.")
        for each in function.own_nodes
        if isinstance(each, ast.Call) and dotted(each.func).startswith("self.")
    }
    inner = sorted(made & called)
    if not holder or not inner:
        return ""
    options = ", ".join(f"{key}={value}" for key, value in asked.keywords)
    lines = listed(f"`{holder}.{each}.compile({options})`" for each in inner)
    return (
        f". Or compile the network inside alone, {lines} in place of {code(asked.node)}, and "
        f"call `{holder}` itself: the rest of `{function.owner.name}.forward` then runs in plain "
        "Python"
    )


RULE = ProgramRule(
    id="metric-update",
    order=15,
    applies=_applies,
    words=_words,
)
