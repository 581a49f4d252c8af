"""Work that a function does after it has kept or read a value, done before that where the two have
nothing to do with each other: so that all of it can be in one core.

`score = dice(y).item()`, `self.scores.append(score)` and then `loss = f(y)`: the loss comes first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import ValueFacts
from compilescope.knowledge.source.flow.cuts import is_docstring, is_light, is_return
from compilescope.knowledge.source.flow.purity import first, remarks
from compilescope.knowledge.source.syntax.bindings import bound_names, definitions_of, statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_DEEPEST = 2
"""Calls of the file's own functions that are followed. Chosen: a metric has few helpers."""


def work_first(
    subject: Subject,
    outside: Sequence[cst.BaseStatement],
    keeps: Callable[[cst.BaseStatement], cst.BaseExpression | None],
) -> tuple[Subject, list[cst.BaseStatement]]:
    """The function as it is then, and these statements in it; as they were where nothing can move.
    `keeps`: the list that a statement adds to."""
    module, body = subject.module, statements_of(subject.function)
    start = min(body.index(each) for each in outside)
    end = len(body) - is_return(body[-1])
    late = [each for each in body[start:end] if each in outside or keeps(each) is not None]
    work = [each for each in body[start:end] if each not in late]
    if all(is_light(module, each) for each in work):
        return subject, list(outside)
    for each in work:
        passed = [other for other in late if body.index(other) < body.index(each)]
        if not all(_is_apart(module, each, other, keeps(other)) for other in passed):
            return subject, list(outside)
    edit = Edit(module)
    for each in work:
        edit.remove_statement(each)
    edit.put_before(body[start], work)
    order = [*body[:start], *work, *late, *body[end:]]
    files = {**subject.program.files, module.path: edit.text()}
    # What was seen at a line is not known of the line that stands there now.
    program = dataclasses.replace(
        subject.program, files=files, facts=ValueFacts(), _modules={}, _own=[]
    )
    now = program.module(module.path)
    lines = statements_of(_same(now, module.line(subject.function)))
    moved = [lines[order.index(each)] for each in outside]
    return dataclasses.replace(subject, program=program).at(now, moved[0]), moved


def _same(module: SourceModule, line: int) -> cst.FunctionDef:
    """The function that began on this line, and still does."""
    functions = (each for each in module.walk() if isinstance(each, cst.FunctionDef))
    return next(each for each in functions if module.line(each) == line)


def _is_apart(
    module: SourceModule,
    work: cst.BaseStatement,
    late: cst.BaseStatement,
    held: cst.BaseExpression | None,
) -> bool:
    """Is it the same whichever of the two comes first? The work only computes new values; the other
    one gives a name to a number, or adds to a list that the work does not look at."""
    if not _is_naming(work) or not (held is not None or _is_naming(late)):
        return False
    if bound_names([late]) & module.names_in(work) or bound_names([work]) & module.names_in(late):
        return False
    if first(module, [work], "by-value") is not None or not _only_computes(module, work):
        return False
    if held is None and not _only_computes(module, late):
        return False
    return held is None or module.code(held).split("[")[0] not in module.code(work)


def _only_computes(module: SourceModule, node: cst.CSTNode, depth: int = 0) -> bool:
    """By functions of torch, and by others of the file that only name values and return one."""
    if first(module, [node], "effect", "random") is not None:
        return False
    for remark in remarks(module, node):
        if remark.concern != "unknown":
            continue
        func = remark.call.func if remark.call is not None else None
        found = definitions_of(module, func) if isinstance(func, cst.Name) else []
        called = found[0] if len(found) == 1 and depth < _DEEPEST else None
        if not isinstance(called, cst.FunctionDef) or called.decorators:
            return False
        for each in statements_of(called):
            plain = is_docstring(each) or is_return(each) or _is_naming(each)
            if not plain or not _only_computes(module, each, depth + 1):
                return False
    return True


def _is_naming(statement: cst.BaseStatement) -> bool:
    """`name = value`, and nothing else on the line."""
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    only = parts[0] if len(parts) == 1 else None
    if not isinstance(only, cst.Assign) or len(only.targets) != 1:
        return False
    return isinstance(only.targets[0].target, cst.Name)
