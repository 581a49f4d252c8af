"""A number of a schedule enters compiled code as a Python number and is compiled in each time."""

from __future__ import annotations

import ast
from typing import NamedTuple, TypeAlias

from compilescope.base.patterns import late
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.causes.wrapped import in_own_names, wrapped_function
from compilescope.knowledge.rules.programs._names import (
    argument_of,
    call_of,
    code,
    listed,
    modules_called,
)
from compilescope.knowledge.rules.recompiles._subjects import shown, value_kind
from compilescope.knowledge.source.outline import Function, dotted, names_in
from compilescope.record.bodies import Recompile

_RULES = frozenset(
    {
        "constant-change",
        "float-change",
        "int-change",
        "number-condition",
        "number-needed",
        "other-change",
    }
)
_NUMBERS = ("float", "int")
_TAKES_NUMBER = frozenset({"bool", "float", "format", "int", "round", "str"})
_FACTORS = frozenset({"alpha", "value"})
"""Arguments of torch's operators that take a number and no tensor, and multiply by it."""
_LIMITS = ("min", "max")
"""Of `clamp`, which takes a number or a tensor."""
_OF_TENSORS = frozenset(
    {
        *("add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "lerp", "lerp_"),
        *("maximum", "minimum", "multiply", "subtract", "true_divide", "where"),
    }
)
"""Methods of tensors that take a tensor in place of a number."""
_DEEPEST = 3
"""Calls of the user's own functions that are followed. Chosen."""
_GUARD = "Guard fail reason:"
"""In what Dynamo says of a graph that does not fit the call that it was made for (torch 2.13)."""
_WORD = late(r"[A-Za-z_]\w*")
_ARITHMETIC = frozenset({"abs", "clamp", "max", "min", "pow"})


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if isinstance(finding, FailureFinding):
        return _GUARD in finding.text
    if not isinstance(finding, RecompileFinding) or case.rule not in _RULES:
        return False
    kinds = {value_kind(finding.expected), value_kind(finding.actual)}
    return kinds <= {*_NUMBERS} and (finding.count > 1 or finding.limit_hit)


def _words(case: ProgramCase) -> str:
    function = _compiled(case)
    if function is None:
        return ""
    name = _name(case, function)
    if not name.isidentifier() or name not in function.all_parameters:
        return ""
    needs = _needs(case, function, name)
    is_fixed = getattr(case.finding, "compiled_in", "") or isinstance(case.finding, FailureFinding)
    if needs is None:
        return ""
    if not is_fixed and all(kind in ("test", "taken") for kind, _ in needs):
        # A test alone needs one compilation for each side, once the number is dynamic.
        return ""
    call = call_of(case, function)
    given = argument_of(call[0], function, name) if call is not None else None
    if call is None or given is None:
        return ""
    caller = f"`{call[1].name}`" if call[1] is not None else "the caller"
    way = f"pass it as a tensor, {code(_with_tensor(call[0], function, name))}"
    way += _instead(needs, caller)
    models = [each for each in modules_called(case, function) if not each.startswith("self")]
    new = f"`{name}` is another number in each call of `{function.name}`"
    told = f"{new}{_why(needs, bool(is_fixed))}"
    if models:
        lines = listed(f"`{each}.compile()`" for each in models)
        return (
            f"{told} Compile {listed(f'`{m}`' for m in models)}"
            f" alone, {lines}, and leave the rest of `{function.name}` in plain Python, without "
            f"torch.compile; or {way}."
        )
    return f"{told} {way[0].upper()}{way[1:]}."


def _compiled(case: ProgramCase) -> Function | None:
    """The user's function that was compiled: inside of torch's wrapper, if there is one."""
    ref, finding = case.compiled, case.finding
    if ref is not None and ref.file in case.own_files:
        return case.function_around(ref.file, ref.line, ref.function)
    if isinstance(finding, RecompileFinding) and finding.file in case.own_files:
        return wrapped_function(finding, case.sources)
    return None


def _name(case: ProgramCase, function: Function) -> str:
    """The argument that varies; of a failure the one that its message quotes a guard on, if that
    made the function compile again in this run."""
    finding = case.finding
    if isinstance(finding, RecompileFinding):
        return shown(in_own_names(finding, case.sources).subject)
    told = getattr(finding, "text", "")
    guard = told.partition(_GUARD)[2].partition("#")[0]
    quoted = {*_WORD.findall(guard)} & {*function.all_parameters}
    failed = {
        each.subject
        for _, body in case.sources.run.of(Recompile)
        if body.frame == case.compiled
        for entry in body.entries
        for each in entry.failed
    }
    found = quoted & failed
    return found.pop() if len(found) == 1 else ""


def _why(needs: _Needs, is_fixed: bool) -> str:
    by_number = [
        need.expression if is_fixed else need.text
        for (kind, _), need in needs.items()
        if kind != "test" or not is_fixed
    ]
    if is_fixed:
        what = listed(by_number) or "an expression of it"
        return (
            f". Dynamo makes it dynamic, but an operator takes {what} as a Python number, so each "
            "value has its own graph."
        )
    if not by_number:
        return ": each value is compiled again."
    return (
        f", and {listed(by_number)} need{'s' if len(by_number) == 1 else ''} the number itself: each "
        "value is compiled again."
    )


class _Need(NamedTuple):
    """What looks at the number itself, between backticks."""

    text: str
    expression: str
    """Of the number, as it is given."""


_Needs: TypeAlias = "dict[tuple[str, str], _Need]"


def _needs(case: ProgramCase, function: Function, name: str, depth: int = 0) -> _Needs | None:
    """The expressions that look at the number itself; None where it is also a size, an index or
    anything else that no tensor can be."""
    found: _Needs = {}
    for node in function.own_nodes:
        if isinstance(node, ast.Subscript) and name in names_in(node.slice):
            return None
        if isinstance(node, (ast.If, ast.IfExp, ast.While)) and name in names_in(node.test):
            test = ast.unparse(node.test)
            if "None" in test:
                return None
            found.setdefault(("test", test), _Need(code(test), code(test)))
        if isinstance(node, ast.For) and name in names_in(node.iter):
            return None
        if isinstance(node, ast.Call) and not _in_call(case, function, node, name, found, depth):
            return None
        if isinstance(node, (ast.List, ast.Dict, ast.Set, ast.JoinedStr)) and name in names_in(
            node
        ):
            return None
    return found


def _in_call(
    case: ProgramCase, around: Function, node: ast.Call, name: str, found: _Needs, depth: int
) -> bool:
    """False where it is given to something that takes no tensor in its place."""
    given = [*node.args, *(each.value for each in node.keywords)]
    if not any(name in names_in(each) and not _is_within_call(each, name) for each in given):
        return True
    function = dotted(node.func)
    last = function.rpartition(".")[2] or getattr(node.func, "attr", "")
    own = _helper(case, around, function)
    if own is not None:
        return depth < _DEEPEST and _in_helper(case, own, node, name, found, depth)
    for keyword in node.keywords:
        value = keyword.value
        if name in names_in(value) and not _is_within_call(value, name):
            text = ast.unparse(value)
            if keyword.arg in _LIMITS and last in ("clamp", "clamp_", "clip", "clip_"):
                found.setdefault(("taken", text), _Need(code(text), code(text)))
                continue
            if keyword.arg not in _FACTORS:
                return False
            whole = code(f"{keyword.arg}={text}")
            found.setdefault(("factor", text), _Need(whole, whole))
    for argument in node.args:
        if name not in names_in(argument) or _is_within_call(argument, name):
            continue
        if function.startswith("math."):
            return False  # torch has the same for tensors, which the words for the line name.
        if last in _TAKES_NUMBER:
            text = ast.unparse(node)
            found.setdefault(("call", text), _Need(code(text), code(text)))
        elif last in _OF_TENSORS and isinstance(node.func, ast.Attribute):
            continue
        elif not _takes_tensor(function, last, argument):
            return False
    return True


def _takes_tensor(function: str, last: str, argument: ast.expr) -> bool:
    if function.startswith("torch."):
        known = last in ("where", "tensor", "_foreach_mul_", *_OF_TENSORS)
        return known or isinstance(argument, ast.BinOp)
    return last in _ARITHMETIC


def _helper(case: ProgramCase, around: Function, name: str) -> Function | None:
    """The user's own function that a name means, if there is one of that name."""
    owner = around.owner if name.startswith("self.") else None
    plain = name.removeprefix("self.") if owner is not None else name
    found = [
        each
        for outline in case.outlines
        for each in outline.functions_called(plain)
        if each.owner is owner
    ]
    return found[0] if len(found) == 1 else None


def _in_helper(
    case: ProgramCase, helper: Function, node: ast.Call, name: str, found: _Needs, depth: int
) -> bool:
    for parameter in helper.all_parameters:
        given = argument_of(node, helper, parameter)
        if given is None or name not in names_in(given):
            continue
        inner = _needs(case, helper, parameter, depth + 1)
        if inner is None:
            return False
        found.update(inner)
    return not any(isinstance(each, ast.Starred) and name in names_in(each) for each in node.args)


def _is_within_call(node: ast.expr, name: str) -> bool:
    """Does only a call inside take it? That call is looked at by itself."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    inside = {id(each) for call in calls for each in ast.walk(call)}
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    return bool(names) and all(id(each) in inside for each in names)


def _instead(needs: _Needs, caller: str) -> str:
    """What to do with the expressions that take no tensor."""
    by_kind: dict[str, list[str]] = {}
    for (kind, factor), need in needs.items():
        by_kind.setdefault(kind, []).append(need.text)
        if kind == "factor":
            by_kind.setdefault("by", []).append(code(factor))
    parts = []
    if "factor" in by_kind:
        parts.append(f"multiply by {listed(by_kind['by'])} where {listed(by_kind['factor'])} is")
    if "call" in by_kind:
        done = listed(by_kind["call"])
        parts.append(f"do {done} in {caller} and pass its result as a tensor too")
    if "test" in by_kind:
        tested = listed(by_kind["test"])
        parts.append(f"test {tested} in {caller} and pass the answer, a bool, as well")
    return f", and {parts[0]}" if len(parts) == 1 else "".join(f"; {part}" for part in parts)


def _with_tensor(call: ast.Call, function: Function, name: str) -> str:
    """The call with the number as a tensor; without its other arguments where these are long."""
    given = argument_of(call, function, name)
    texts = [
        f"torch.tensor({ast.unparse(each)})" if each is given else ast.unparse(each)
        for each in call.args
    ]
    texts += [
        f"{each.arg}=torch.tensor({ast.unparse(each.value)})"
        if each.value is given
        else ast.unparse(each)
        for each in call.keywords
    ]
    whole = ", ".join(texts)
    changed = next((text for text in texts if "torch.tensor(" in text), "")
    return f"{ast.unparse(call.func)}({whole if len(whole) < 80 else f'…, {changed}'})"


RULE = ProgramRule(
    id="schedule-number",
    order=40,
    applies=_applies,
    words=_words,
    of_failures=True,
)
