"""A value that Dynamo cannot trace the making of, made before and handed to the compiled part."""

from __future__ import annotations

import re

from compilescope.fixes.compilation.frames import check_root, own_statement, sites_in
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.shell import Shell
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.constants import check_early
from compilescope.source.flow.cuts import Split, split_around
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.bindings import (
    bound_names,
    local_names,
    parameters_of,
    statements_of,
)
from compilescope.source.syntax.edit import Edit
from compilescope.source.trees import cst

_CHANGING = re.compile(r"^(uuid|secrets|time|datetime|random|numpy\.random)\.")


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    check_root(subject)
    values, outside = _sort(subject)
    if not values:
        raise NotMeant("no value that could be passed in is created here")
    body = statements_of(function)
    moved: list[cst.BaseStatement] = []
    lifted: dict[str, cst.BaseExpression] = {}
    for value in values:
        if any(_CHANGING.match(name) for name in _meanings(subject, value)):
            raise Refused("its value differs in each call, and each would be compiled separately")
        statement = own_statement(subject, value)
        assert statement is not None
        check_early(subject, value, body[: body.index(statement)])
        if _is_all_of(subject, statement, value):
            moved.append(statement)
        else:
            lifted[_name(subject, value, lifted)] = value
    split = split_around(module, [each for each in body if each not in moved], outside)
    late = [own_statement(subject, value) for value in values]
    if any(each in split.after for each in late) or any(each in split.before for each in late):
        raise NotMeant("the value is not part of the compiled work")
    edit = Edit(module)
    before = [*split.before, *moved]
    whole = Split(before, split.core, split.after, None, split.outer_before, lifted=lifted)
    Shell(edit, function, whole).write()
    return Patch(edit.files())


def _is_all_of(subject: Subject, statement: cst.BaseStatement, value: cst.BaseExpression) -> bool:
    """`name = value`, and the name is bound nowhere else: the statement moves as it is."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    only = statement.body[0]
    if not isinstance(only, cst.Assign) or only.value is not value or len(only.targets) != 1:
        return False
    rest = [each for each in subject.function.body.body if each is not statement]
    names = bound_names([statement])
    return isinstance(only.targets[0].target, cst.Name) and not names & (
        bound_names(rest) | set(parameters_of(subject.function))
    )


def _sort(subject: Subject) -> tuple[list[cst.BaseExpression], list[cst.BaseStatement]]:
    """Values to be handed in, and statements that stay outside as a whole."""
    module = subject.module
    values: list[cst.BaseExpression] = []
    outside: list[cst.BaseStatement] = []
    for node in sites_in(subject):
        statement = own_statement(subject, node)
        if statement is None:
            raise NotMeant("the line is not a statement in the function's own body")
        if _is_effect(statement):
            outside.append(statement)
        elif isinstance(node, cst.Call):
            if not any(node is each or node in module.ancestors(each) for each in values):
                values = [each for each in values if each not in list(module.walk(node))]
                values.append(node)
        else:
            raise NotMeant("Dynamo does not stop at a call here")
    return values, outside


def _is_effect(statement: cst.BaseStatement) -> bool:
    """A call for its effect alone."""
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(part, cst.Expr) for part in statement.body
    )


def _meanings(subject: Subject, value: cst.BaseExpression) -> set[str]:
    found: set[str] = set()
    for node in subject.module.walk(value):
        if isinstance(node, cst.Call):
            found |= subject.module.meaning(node.func)
    return found


def _name(subject: Subject, value: cst.BaseExpression, taken: dict[str, cst.BaseExpression]) -> str:
    func = value.func if isinstance(value, cst.Call) else value
    word = func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "value")
    word = word if isinstance(value, cst.Attribute) else f"{word}_value"
    if isinstance(value, cst.Call) and isinstance(func, cst.Attribute) and word == "get_value":
        word = f"{subject.module.code(func.value).split('.')[-1]}_value"
    known = local_names(subject.function) | set(parameters_of(subject.function)) | set(taken)
    free = subject.module.fresh_name(word) if word in known else word
    while free in taken:
        free = f"{free}_2"
    return free


FIX = Fix(
    id="value-from-outside",
    title="compute the value first and pass it to the compiled part",
    rules=frozenset(
        {
            "outside-call",
            "context-manager",
            "file-access",
            "GB0046",
            "GB0045",
            "GB0055",
            "GB0208",
            "GB7650",
            "GB0363",
            "GB0015",
        }
    ),
    order=86,
    kind="source",
    why="Everything the value depends on exists when the function starts, and nothing before "
    "this line changes it, so it is the same a little earlier. As an argument it is "
    "guarded: another value is another compilation, never a wrong result.",
    propose=_propose,
)
