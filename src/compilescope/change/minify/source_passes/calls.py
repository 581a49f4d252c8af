"""Inlines the program's own functions where they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import libcst as cst

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.source.edits import (
    Change,
    Edit,
    body_of,
    calls,
    classes,
    closed,
    functions,
    is_simple,
    last_name,
    names_in,
    one_by_one,
    substitute,
    walk,
)


def _find(tree: cst.Module) -> Iterator[list[Edit]]:
    methods = {f for owner in classes(tree) for f in owner.body.body}
    named = Counter(last_name(node) for node in walk(tree) if isinstance(node, cst.Name))
    named.update(node.attr.value for node in walk(tree) if isinstance(node, cst.Attribute))
    statements = {
        call: line
        for line in walk(tree)
        if isinstance(line, cst.SimpleStatementLine)
        for call in [_whole_call(line)]
        if call is not None
    }
    for function in functions(tree):
        if function.decorators or function.asynchronous or _yields(function):
            continue
        name = function.name.value
        callers = [call for call in calls(tree) if last_name(call.func) == name]
        # Its own name, and once more (for an attribute: its `attr` is a Name as well).
        extra = sum(1 + isinstance(call.func, cst.Attribute) for call in callers)
        only = named[name] == 1 + extra
        for call in callers:
            given = _given(function, call, is_method=function in methods)
            if given is None or call in set(walk(function)):
                continue
            gone = _removal(function) if only and len(callers) == 1 else ()
            yield [
                *_as_expression(function, call, given, gone),
                *_as_statements(function, call, given, gone, statements.get(call)),
            ]


def _yields(function: cst.FunctionDef) -> bool:
    return any(isinstance(node, (cst.Yield, cst.Await, cst.Nonlocal)) for node in walk(function))


def _removal(function: cst.FunctionDef) -> Edit:
    return ((function, lambda _: cst.RemoveFromParent()),)


def _given(
    function: cst.FunctionDef, call: cst.Call, *, is_method: bool
) -> dict[str, cst.BaseExpression] | None:
    """Parameter -> argument; None where they cannot be told by looking."""
    params = function.params
    if params.star_kwarg or isinstance(params.star_arg, cst.Param) or params.posonly_params:
        return None
    wanted = [*params.params, *params.kwonly_params]
    names = [each.name.value for each in wanted]
    given: dict[str, cst.BaseExpression] = {}
    if is_method:
        if not isinstance(call.func, cst.Attribute) or not names:
            return None
        given[names[0]] = call.func.value
    elif not isinstance(call.func, cst.Name):
        return None
    for index, argument in enumerate(call.args, int(is_method)):
        name = argument.keyword.value if argument.keyword else "".join(names[index : index + 1])
        if argument.star or name not in names or name in given:
            return None
        given[name] = argument.value
    for param in wanted:
        if param.name.value not in given:
            if param.default is None:
                return None
            given[param.name.value] = param.default
    return given


def _as_expression(
    function: cst.FunctionDef, call: cst.Call, given: dict[str, Any], gone: Edit
) -> Iterator[Edit]:
    """For a function of one statement."""
    body = body_of(function.body)
    small = body[0].body if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) else ()
    if len(small) != 1 or not isinstance(small[0], (cst.Return, cst.Expr)):
        return
    value = small[0].value
    if value is None:
        return
    used = Counter(name.value for name in names_in(value))
    if any(used[name] > 1 and not is_simple(each) for name, each in given.items()):
        return
    new = closed(substitute(value, given))
    yield ((call, lambda _: new.deep_clone()), *gone)


def _as_statements(
    function: cst.FunctionDef,
    call: cst.Call,
    given: dict[str, Any],
    gone: Edit,
    line: cst.SimpleStatementLine | None,
) -> Iterator[Edit]:
    """For a call that is a statement of its own, or the value of one."""
    if line is None:
        return
    body = body_of(function.body)
    last = body[-1]
    ending = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    returns = [node for node in walk(function.body) if isinstance(node, cst.Return)]
    if returns and (len(returns) > 1 or returns[0] is not ending):
        return
    value: Any = cst.Name("None")
    if returns:
        assert isinstance(ending, cst.Return) and isinstance(last, cst.SimpleStatementLine)
        value = ending.value or value
        body = [*body[:-1], *([last.with_changes(body=last.body[:-1])] if last.body[1:] else [])]
    # Under other names the arguments are bound first, as a call does it.
    bound = [
        cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], each)])
        for name, each in given.items()
        if not (isinstance(each, cst.Name) and each.value == name)
    ]

    def change(present: cst.SimpleStatementLine) -> Any:
        ended = _with_value(line, value)
        lines = [*bound, *body, *ended]
        return cst.FlattenSentinel([each.deep_clone() for each in lines])

    yield ((line, change), *gone)


def _whole_call(line: cst.SimpleStatementLine) -> cst.Call | None:
    only = line.body[0] if len(line.body) == 1 else None
    value = only.value if isinstance(only, (cst.Expr, cst.Return, cst.Assign)) else None
    return value if isinstance(value, cst.Call) else None


def _with_value(line: cst.SimpleStatementLine, value: Any) -> list[Any]:
    only = line.body[0]
    if isinstance(only, cst.Expr) and isinstance(value, (cst.Name, cst.BaseNumber)):
        return []
    change: Change = lambda node: node.with_changes(value=value)  # noqa: E731
    return [line.with_changes(body=[change(only)])]


PASS = Pass("calls", 110, one_by_one(_find))
