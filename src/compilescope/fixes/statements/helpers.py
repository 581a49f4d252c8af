"""A helper that only keeps what it is given, called when the graph has run.

`history.record(loss)` adds to a list, `metric.update(y)` counts: nothing of that is for a graph,
and nothing that is computed later depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import msgspec

from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.afterwards import done_afterwards, grown_list, lone_call
from compilescope.fixes.statements.shell import leave_alone
from compilescope.fixes.subject import Subject
from compilescope.source.flow.cuts import is_docstring, is_light_value
from compilescope.source.flow.purity import first
from compilescope.source.refusals import Refused
from compilescope.source.syntax.bindings import parameters_of, statements_of
from compilescope.source.syntax.edit import Edit
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst


def called_afterwards(subject: Subject, where: SourceModule, caller: cst.FunctionDef) -> Patch:
    """The function around the finding is a helper: `caller`, which is compiled, calls it after its
    core. Raises `Refused` where it does more than keep values, or its caller more with it."""
    helper = subject.function
    name = helper.name.value
    if subject.module.class_of(helper) is None:
        raise Refused(f"it is unknown who else knows what `{name}` keeps")
    kept = _kept(subject.module, helper)
    calls = [each for each in where.walk(caller.body) if _calls(each, name)]
    lines = [each for each in statements_of(caller) if lone_call(each) in calls]
    methods = all(isinstance(each.func, cst.Attribute) for each in calls)
    if not calls or len(lines) != len(calls) or not methods:
        raise Refused(
            f"`{name}` is part of another function's graph, and not called by a statement of "
            f"`{caller.name.value}`"
        )
    there = subject.at(where, lines[0])
    check_only(there, cst.ensure_type(calls[0].func, cst.Attribute).value, lines)
    patch = done_afterwards(there, lines)
    if all(is_light_value(subject.module, each) for each in kept):
        return patch
    return _left_alone(subject, patch)


def _kept(module: SourceModule, helper: cst.FunctionDef) -> list[cst.BaseExpression]:
    """What the helper adds to lists and sets attributes of its own object to."""
    found: list[cst.BaseExpression] = []
    for each in statements_of(helper):
        if is_docstring(each):
            continue
        values = _added(helper, each) or _set(helper, each)
        if not values or first(module, [*values], "effect", "unknown", "random") is not None:
            raise Refused(
                f"`{helper.name.value}` is part of another function's graph, and does more than "
                "keep what it is given"
            )
        found += values
    return found


def _set(helper: cst.FunctionDef, statement: cst.BaseStatement) -> list[cst.BaseExpression]:
    """`y` of `self.last = y` and of `self.total += y`."""
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, cst.Assign) and len(only.targets) == 1:
        target: cst.BaseExpression = only.targets[0].target
    elif isinstance(only, cst.AugAssign):
        target = only.target
    else:
        return []
    return [only.value] if _is_own(helper, target) else []


def _is_own(helper: cst.FunctionDef, target: cst.BaseExpression) -> bool:
    """`self.total`: an attribute of the helper's own object."""
    holder = target.value if isinstance(target, cst.Attribute) else None
    return isinstance(holder, cst.Name) and [holder.value] == parameters_of(helper)[:1]


def _left_alone(subject: Subject, patch: Patch) -> Patch:
    """Where the helper computes what it keeps, Dynamo would compile it by itself."""
    module, helper = subject.module, subject.function
    number = _namesakes(module, helper).index(helper)
    now = SourceModule(module.path, patch.files.get(module.path, module.text))
    edit = Edit(now)
    leave_alone(edit, _namesakes(now, helper)[number])
    return msgspec.structs.replace(patch, files={**patch.files, **edit.files()})


def _namesakes(module: SourceModule, function: cst.FunctionDef) -> list[cst.FunctionDef]:
    """All functions of that name, in order: lines put between them change nothing in it."""
    return [
        each
        for each in module.walk()
        if isinstance(each, cst.FunctionDef) and each.name.value == function.name.value
    ]


def check_only(
    subject: Subject, held: cst.BaseExpression, lines: Sequence[cst.BaseStatement]
) -> None:
    """Raises `Refused` where the function names what holds the list anywhere else."""
    module = subject.module
    shown = module.code(held)
    uses = [
        each
        for each in module.walk(subject.function.body)
        if isinstance(each, (cst.Name, cst.Attribute)) and module.code(each) == shown
    ]
    if len(uses) != len(lines):
        raise Refused(f"the function does more with `{shown}` than add to it")


def _calls(node: cst.CSTNode, name: str) -> TypeGuard[cst.Call]:
    func = node.func if isinstance(node, cst.Call) else None
    called = func.attr if isinstance(func, cst.Attribute) else func
    return isinstance(called, cst.Name) and called.value == name


def _added(helper: cst.FunctionDef, statement: cst.BaseStatement) -> list[cst.BaseExpression]:
    """`y` of `self.log.append(y)`; nothing of what adds to no list of its own."""
    call, grown = lone_call(statement), grown_list(statement)
    own = call is not None and grown is not None and _is_own(helper, grown)
    return [arg.value for arg in call.args] if own and call is not None else []
