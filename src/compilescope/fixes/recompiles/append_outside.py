"""A list that grows with each call, whose length is guarded: it is added to outside of the graph."""

from __future__ import annotations

from compilescope.fixes.arguments.guarded import cause_of, recompiled_function
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.afterwards import (
    called_afterwards,
    check_only,
    done_afterwards,
    grown_list,
)
from compilescope.fixes.subject import Subject
from compilescope.source.refusals import NotMeant
from compilescope.source.syntax.bindings import statements_of
from compilescope.source.trees import cst


def _propose(subject: Subject) -> Patch:
    if subject.statement not in _adding(subject.function):
        raise NotMeant("it is not a line that adds to a list")
    compiled, function = cause_of(subject).compiled, subject.function
    if (compiled.file, compiled.function) != (subject.file, function.name.value):
        where, compiled_function = recompiled_function(subject)
        if not isinstance(compiled_function, cst.FunctionDef):
            raise NotMeant("a lambda was compiled")
        return called_afterwards(subject, where, compiled_function)
    grown = grown_list(subject.statement)
    assert grown is not None
    adding = _adding(function)
    check_only(subject, grown, [each for each in adding if _is_grown(subject, each, grown)])
    return done_afterwards(subject, adding)


def _adding(function: cst.FunctionDef) -> list[cst.BaseStatement]:
    return [each for each in statements_of(function) if grown_list(each) is not None]


def _is_grown(subject: Subject, statement: cst.BaseStatement, held: cst.CSTNode) -> bool:
    grown = grown_list(statement)
    return grown is not None and subject.module.code(grown) == subject.module.code(held)


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
