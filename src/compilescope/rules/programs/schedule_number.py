"""A number of a schedule enters compiled code as a Python number and is compiled in each time."""

from __future__ import annotations

import ast

from compilescope.findings.recompiles import RecompileFinding
from compilescope.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.rules.programs._names import argument_of, call_of, code, listed, modules_called
from compilescope.rules.recompiles._subjects import is_path, shown, value_kind
from compilescope.source.outline import Function, body_nodes, dotted, names_in

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
_ARITHMETIC = frozenset({"abs", "clamp", "max", "min", "pow"})


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if not isinstance(finding, RecompileFinding) or case.rule not in _RULES:
        return False
    kinds = {value_kind(finding.expected), value_kind(finding.actual)}
    return kinds <= {*_NUMBERS} and (finding.count > 1 or finding.limit_hit)


def _words(case: ProgramCase) -> str:
    finding = case.finding
    assert isinstance(finding, RecompileFinding)
    code_ref = case.compiled
    name = shown(finding.subject)
    if code_ref is None or not is_path(name) or not name.isidentifier():
        return ""
    function = case.function_around(code_ref.file, code_ref.line, code_ref.function)
    if function is None or code_ref.file not in case.own_files:
        return ""
    if name not in function.all_parameters:
        return ""
    needs = _needs(function, name)
    if needs is None or all(kind == "test" for kind, _ in needs):
        # A test alone needs one compilation for each side, once the number is dynamic.
        return ""
    call = call_of(case, function)
    given = argument_of(call[0], function, name) if call is not None else None
    if call is None or given is None:
        return ""
    caller = f"`{call[1].name}`" if call[1] is not None else "the caller"
    new = f"`{name}` is another number in each call of `{function.name}`"
    looks = (
        f", and {listed(needs.values())} need{'s' if len(needs) == 1 else ''} the number itself"
        if needs
        else ""
    )
    inner = _instead(needs, caller)
    models = [each for each in modules_called(case, function) if each != "self"]
    way = f"pass it as a tensor, {code(_with_tensor(call[0], function, name))}"
    if inner:
        way += inner
    if models:
        lines = listed(f"`{each}.compile()`" for each in models)
        return (
            f"{new}{looks}: each value is compiled again. Compile {listed(f'`{m}`' for m in models)}"
            f" alone, {lines}, and leave the rest of `{function.name}` in plain Python, without "
            f"torch.compile; or {way}."
        )
    return f"{new}{looks}: each value is compiled again. {way[0].upper()}{way[1:]}."


_Needs = dict[tuple[str, str], str]


def _needs(function: Function, name: str) -> _Needs | None:
    """The expressions that look at the number itself, between backticks; None where it is also a
    size, an index or anything else that no tensor can be."""
    found: _Needs = {}
    for node in body_nodes(function.node):
        if isinstance(node, ast.Subscript) and name in names_in(node.slice):
            return None
        if isinstance(node, (ast.If, ast.IfExp, ast.While)) and name in names_in(node.test):
            test = ast.unparse(node.test)
            if "None" in test:
                return None
            found.setdefault(("test", test), code(test))
        if isinstance(node, ast.For) and name in names_in(node.iter):
            return None
        if isinstance(node, ast.Call) and not _in_call(node, name, found):
            return None
        if isinstance(node, (ast.List, ast.Dict, ast.Set, ast.JoinedStr)) and name in names_in(
            node
        ):
            return None
    return found


def _in_call(node: ast.Call, name: str, found: _Needs) -> bool:
    """False where it is given to something that takes no tensor in its place."""
    function = dotted(node.func)
    last = function.rpartition(".")[2]
    for keyword in node.keywords:
        if name in names_in(keyword.value) and not _is_within_call(keyword.value, name):
            if keyword.arg not in _FACTORS:
                return False
            found.setdefault(
                ("factor", ast.unparse(keyword.value)),
                code(f"{keyword.arg}={ast.unparse(keyword.value)}"),
            )
    for argument in node.args:
        if name not in names_in(argument) or _is_within_call(argument, name):
            continue
        if function.startswith("math."):
            return False  # torch has the same for tensors, which the words for the line name.
        if last in _TAKES_NUMBER:
            text = ast.unparse(node)
            found.setdefault(("call", text), code(text))
        elif last not in _ARITHMETIC and not function.startswith("torch."):
            return False
        elif function.startswith("torch.") and not isinstance(argument, ast.BinOp):
            return last in ("where", "lerp", "mul", "add", "sub", "div", "tensor", "_foreach_mul_")
    return True


def _is_within_call(node: ast.expr, name: str) -> bool:
    """Does only a call inside take it? That call is looked at by itself."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    inside = {id(each) for call in calls for each in ast.walk(call)}
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    return bool(names) and all(id(each) in inside for each in names)


def _instead(needs: _Needs, caller: str) -> str:
    """What to do with the expressions that take no tensor."""
    by_kind: dict[str, list[str]] = {}
    for (kind, factor), text in needs.items():
        by_kind.setdefault(kind, []).append(text)
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
        parts.append(f"test {tested} in {caller}, with a function for each side")
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
)
