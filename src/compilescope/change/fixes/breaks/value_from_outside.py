"""A value that Dynamo cannot trace the making of, made before and handed to the compiled part."""

from __future__ import annotations

import re

from compilescope.change.fixes.compilation.frames import check_root, own_statement, sites_in
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.shell import passed_as_arguments
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import local_names, parameters_of
from compilescope.knowledge.source.trees import cst

_CHANGING = re.compile(r"^(uuid|secrets|time|datetime|random|numpy\.random)\.")


def _propose(subject: Subject) -> Patch:
    check_root(subject)
    values, outside = _sort(subject)
    if not values:
        raise NotMeant("no value that could be passed in is created here")
    for value in values:
        if any(_CHANGING.match(name) for name in _meanings(subject, value)):
            raise Refused("its value differs in each call, and each would be compiled separately")
    named: dict[str, cst.BaseExpression] = {}
    for value in values:
        named[_name(subject, value, named)] = value
    return passed_as_arguments(subject, named, outside)


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
