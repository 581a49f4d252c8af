"""An attribute that is None until the first call writes it: the graph was made for None."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.library import in_library
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import code
from compilescope.knowledge.rules.recompiles._subjects import shown, value_kind
from compilescope.knowledge.source.outline import Function, Outline, dotted

_MOST_LETTERS = 60
"""Of a value in a sentence. Chosen."""
"""Of a value that is written down. Chosen."""
_OF_ONE_OBJECT = ("self.", "fn.")
"""Of what is compiled: an argument may be another object in the next call."""
_PLAIN = ("bool", "float", "int", "str")


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    return (
        isinstance(finding, RecompileFinding)
        and finding.expected == "None"
        and finding.is_placed
        and finding.subject.startswith(_OF_ONE_OBJECT)
    )


def _words(case: ProgramCase) -> str:
    finding = case.finding
    assert isinstance(finding, RecompileFinding)
    path = shown(finding.subject)
    attribute = path.rpartition(".")[2]
    outline = case.sources.outline(finding.file)
    function = case.function_around(finding.file, finding.line)
    if outline is None or function is None or not attribute.isidentifier():
        return ""
    if not _is_filled(outline, function, finding.line, attribute):
        return ""
    first = (
        f"`{function.name}` fills `{path}` in at its first call, and the graph was made while it "
        "was None: the second call is compiled again."
    )
    plain = value_kind(finding.actual) in _PLAIN and len(finding.actual) <= _MOST_LETTERS
    if plain and ".config." in f".{path}":
        made = _config_made(case)
        value = f"{attribute}={finding.actual}"
        where = code(f"{made}(…, {value})") if made else f"`{value}` in the config"
        return f"{first} Set it before: {where}."
    model = _compiled_object(case)
    if _is_property(function):
        holder = f"`{model}`" if model else "the module"
        read = f"`{model}.{function.name}`" if model else f"`{function.name}`"
        return f"{first} Read {read} once before the first compiled call: {holder} then has it."
    if plain and model and path.count(".") == 1:
        return (
            f"{first} Set it before the first compiled call: "
            f"{code(f'{model}.{attribute} = {finding.actual}')}."
        )
    if in_library(finding.file):
        who = f"`{model}`" if model else "the model"
        return f"{first} Call {who} once before you compile it, with inputs of the same kind."
    return (
        f"{first} Make it before: in `__init__`, or by one call of "
        f"{f'`{model}`' if model else 'the model'} before you compile it."
    )


def _is_filled(outline: Outline, function: Function, line: int, attribute: str) -> bool:
    """Is the line an `if` on the attribute's being None, and is it written there, in the body or
    in a method that the body calls?"""
    for node in function.own_nodes:
        if not (isinstance(node, ast.If) and node.lineno <= line <= (node.test.end_lineno or line)):
            continue
        tested = any(
            isinstance(each, ast.Compare)
            and dotted(each.left).rpartition(".")[2] == attribute
            and isinstance(each.ops[0], ast.Is)
            for each in ast.walk(node.test)
        )
        if not tested:
            continue
        if _writes(node, attribute):
            return True
        called = {
            dotted(each.func).rpartition(".")[2]
            for statement in node.body
            for each in ast.walk(statement)
            if isinstance(each, ast.Call) and dotted(each.func).startswith("self.")
        }
        for name in called:
            if any(_writes(each.node, attribute) for each in outline.functions_called(name)):
                return True
    return False


def _writes(node: ast.AST, attribute: str) -> bool:
    return any(
        isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and each.attr == attribute
        for each in ast.walk(node)
    )


def _is_property(function: Function) -> bool:
    return any(dotted(each).endswith("property") for each in function.node.decorator_list)


def _compiled_object(case: ProgramCase) -> str:
    """What the user gives to torch.compile, if that is one thing with a name."""
    asked = case.compile_call
    if asked is None or asked.way == "decorator":
        return ""
    return asked.target if asked.target.replace(".", "").isidentifier() else ""


def _config_made(case: ProgramCase) -> str:
    """The class of the only config that the user's files make."""
    names = {
        dotted(call.func).rpartition(".")[2]
        for outline in case.outlines
        for call, _ in outline.calls
        if dotted(call.func).endswith("Config")
    }
    return names.pop() if len(names) == 1 else ""


RULE = ProgramRule(
    id="lazy-attribute",
    order=60,
    applies=_applies,
    words=_words,
)
