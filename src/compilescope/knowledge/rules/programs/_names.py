"""What the user calls the things that a program's advice names."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from compilescope.knowledge.rules.causes.rule import ProgramCase
from compilescope.knowledge.source.outline import Function, Outline, dotted
from compilescope.record.stack import plain_function_name

_LONGEST = 100
"""Letters of a line of the user's in a sentence. Chosen, as the one below."""
_MOST_LISTED = 3
"""Lines that a sentence names. Chosen."""
_MOST_CALLERS = 3
"""Functions up the stack that are looked at. Chosen."""
_OF_MODULES = frozenset(
    {
        "eval",
        "load_state_dict",
        "named_parameters",
        "parameters",
        "requires_grad_",
        "state_dict",
        "train",
    }
)
"""Methods of an nn.Module that nothing else in a training program has all by these names."""


def code(node: ast.AST | str) -> str:
    """On one line and between backticks."""
    text = " ".join((node if isinstance(node, str) else ast.unparse(node)).split())
    text = text.replace("`", "'")
    return f"`{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}`"


def listed(texts: Iterable[str]) -> str:
    """`a`, `b` and `c`; no more than can be read."""
    found = list(dict.fromkeys(texts))[:_MOST_LISTED]
    if len(found) < 2:
        return "".join(found)
    return f"{', '.join(found[:-1])} and {found[-1]}"


def compiled_name(case: ProgramCase) -> str:
    """The compiled function, as its author calls it."""
    return plain_function_name(case.compiled.function) if case.compiled is not None else ""


def call_of(case: ProgramCase, function: Function) -> tuple[ast.Call, Function | None] | None:
    """Where the user's files call a function of theirs: on the line that the stack shows, else the
    only place; and the function around it."""
    names = {function.name}
    is_module = function.owner is not None and function.name == "forward"
    for each in case.compile_calls:
        if each.way != "decorator" and is_module:
            names |= _assigned(case.outlines, each.node) | {each.target.rpartition(".")[2]}
        if each.target.rpartition(".")[2] == function.name:
            names |= _assigned(case.outlines, each.node)
    found = [
        (call, around)
        for outline in case.outlines
        for call, around in outline.calls
        if dotted(call.func).rpartition(".")[2] in names
    ]
    lines = {each.line for each in case.stack}
    here = [each for each in found if each[0].lineno in lines]
    chosen = here or found
    return chosen[0] if len(chosen) == 1 or here else None


def assigned(case: ProgramCase, value: ast.AST, text: str) -> str:
    """`model = text`, where the value is bound to a name; else the text."""
    for outline in case.outlines:
        for node in ast.walk(outline.tree):
            if isinstance(node, ast.Assign) and node.value is value:
                return f"{ast.unparse(node.targets[0])} = {text}"
    return text


def _assigned(outlines: tuple[Outline, ...], value: ast.AST) -> set[str]:
    """The names that a value is bound to."""
    for outline in outlines:
        for node in ast.walk(outline.tree):
            if isinstance(node, ast.Assign) and node.value is value:
                return {dotted(each).rpartition(".")[2] for each in node.targets} - {""}
    return set()


def argument_of(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """What a call gives for a parameter."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if name not in function.parameters or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    at = function.parameters.index(name)
    return call.args[at] if at < len(call.args) else None


def modules_called(case: ProgramCase, function: Function) -> list[str]:
    """What a function calls that the program treats as modules, as the place that made them, or
    the nearest to it that is known, names them."""
    known = _modules(case.outlines)
    found: dict[str, None] = {}
    for node in function.own_nodes:
        name = dotted(node.func) if isinstance(node, ast.Call) else ""
        if not name or name == "self" or ("." in name and not name.startswith("self.")):
            continue
        names = _names_outwards(case, function, name)
        if known & {*names}:
            found[names[-1]] = None
    return list(found)


def _names_outwards(case: ProgramCase, function: Function, name: str) -> list[str]:
    """What a parameter is called in the function, in the caller, and so on."""
    names = [name]
    around: Function | None = function
    for _ in range(_MOST_CALLERS):
        if around is None or names[-1] not in around.all_parameters:
            break
        call = call_of(case, around)
        given = argument_of(call[0], around, names[-1]) if call is not None else None
        if call is None or given is None or not dotted(given):
            break
        names.append(dotted(given))
        around = call[1]
    return names


def _modules(outlines: tuple[Outline, ...]) -> set[str]:
    """Names on which methods of modules are called, or that a module's class made."""
    found: set[str] = set()
    for outline in outlines:
        classes = {name for name, node in outline.classes.items() if _is_module(node, outline)}
        for call, _ in outline.calls:
            name, _, method = dotted(call.func).rpartition(".")
            if method in _OF_MODULES and name and name != "self":
                found.add(name)
        for node in ast.walk(outline.tree):
            if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
                continue
            made = dotted(node.value.func)
            if made in classes or made in ("nn.Sequential", "torch.nn.Sequential"):
                found |= {dotted(each) for each in node.targets} - {""}
    return found


def _is_module(node: ast.ClassDef, outline: Outline, depth: int = 0) -> bool:
    for base in node.bases:
        name = dotted(base)
        if name.rpartition(".")[2] in ("Module", "LightningModule"):
            return True
        if (
            name in outline.classes
            and depth < 8
            and _is_module(outline.classes[name], outline, depth + 1)
        ):
            return True
    return False
