"""A list that grows with each call, whose length is guarded: it is added to outside of the graph."""

from __future__ import annotations

from compilescope.fixes.arguments.guarded import cause_of
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.afterwards import done_afterwards
from compilescope.fixes.subject import Subject
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.bindings import statements_of
from compilescope.source.trees import cst

_GROWING = ("append", "extend", "appendleft", "insert")


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    module, function = subject.module, subject.function
    if cause.compiled.file != subject.file or cause.compiled.function != function.name.value:
        raise Refused(
            f"`{function.name.value}` is part of another function's graph, so nothing in it can "
            "stay outside"
        )
    adding = [each for each in statements_of(function) if _grown(each) is not None]
    if subject.statement not in adding:
        raise NotMeant("it is not a line that adds to a list")
    grown = _grown(subject.statement)
    assert grown is not None
    held = module.code(grown)
    uses = [
        each
        for each in module.walk(function.body)
        if isinstance(each, (cst.Name, cst.Attribute)) and module.code(each) == held
    ]
    if len(uses) != sum(1 for each in adding if module.code(_grown(each) or each) == held):
        raise Refused(f"the function does more with `{held}` than add to it")
    return done_afterwards(subject, adding)


def _grown(statement: cst.BaseStatement) -> cst.BaseExpression | None:
    """`self.log` of `self.log.append(y)`."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    call = only.value if isinstance(only, cst.Expr) else None
    func = call.func if isinstance(call, cst.Call) else None
    if not isinstance(func, cst.Attribute) or func.attr.value not in _GROWING:
        return None
    return func.value


FIX = Fix(
    id="append-outside",
    title="add to the list outside the graph",
    rules=frozenset({"recompile/length-change"}),
    order=85,
    kind="source",
    why="The function does the same in the same order. Dynamo skips its own frame (not its "
    "callees), so nothing guards on the list's length, and what computes is in one function "
    "that it calls.",
    propose=_propose,
)
