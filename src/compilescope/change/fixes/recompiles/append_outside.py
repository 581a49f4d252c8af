"""A list or dict that grows with each call, whose length is guarded: it is added to outside of the
graph."""

from __future__ import annotations

from compilescope.change.fixes.arguments.guarded import cause_of, counted, recompiled_function
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.afterwards import (
    called_afterwards,
    check_only,
    converts,
    done_afterwards,
    grown_list,
)
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.cuts import is_light_value
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import statements_of
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if subject.statement not in _adding(subject, subject.function):
        raise NotMeant("it is not a line that adds to a list")
    compiled, function = cause.compiled, subject.function
    if (compiled.file, compiled.function) != (subject.file, function.name.value):
        where, compiled_function = recompiled_function(subject)
        if not isinstance(compiled_function, cst.FunctionDef):
            raise NotMeant("a lambda was compiled")
        return called_afterwards(subject, where, compiled_function)
    grown = _grown(subject, subject.statement)
    assert grown is not None
    adding = _adding(subject, function)
    check_only(subject, grown, [each for each in adding if _is_grown(subject, each, grown)])
    _check_traced(subject, adding)
    return done_afterwards(subject, adding)


def _check_traced(subject: Subject, adding: list[cst.BaseStatement]) -> None:
    """Raises `Refused` where tracing stops within them, but for a number that is read: what they
    add would not be computed by a graph."""
    module = subject.module
    within = {node for each in adding for node in module.walk(each)}
    for site in subject.program.digest.sites:
        if site.file == subject.file:
            node = module.node_at(site.line, site.column, site.end_column)
            if node in within and node is not None and not converts(subject, node):
                raise Refused(f"Dynamo does not trace `{short(module, node)}`")


def _adding(subject: Subject, function: cst.FunctionDef) -> list[cst.BaseStatement]:
    return [each for each in statements_of(function) if _grown(subject, each) is not None]


def _grown(subject: Subject, statement: cst.BaseStatement) -> cst.BaseExpression | None:
    """The list or dict that the statement adds to."""
    return grown_list(statement) or _grown_dict(subject, statement)


def _grown_dict(subject: Subject, statement: cst.BaseStatement) -> cst.BaseExpression | None:
    """`self.seen` of `self.seen[step] = y`, where that is what grows: not a tensor that is written
    to."""
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    only = parts[0] if len(parts) == 1 else None
    if not isinstance(only, cst.Assign) or len(only.targets) != 1:
        return None
    target = only.targets[0].target
    if not isinstance(target, cst.Subscript) or len(target.slice) != 1:
        return None
    module, key = subject.module, target.slice[0].slice
    if not isinstance(key, cst.Index) or not is_light_value(module, key.value):
        return None
    return target.value if module.code(target.value) == counted(subject) else None


def _is_grown(subject: Subject, statement: cst.BaseStatement, held: cst.CSTNode) -> bool:
    grown = _grown(subject, statement)
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
