"""An argument that may be None, for which the function makes a tensor: it does so before the graph.

`if mask is None: mask = torch.ones(...)` stays where it is, and the rest of the function is compiled
alone: it is given a tensor in every call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from compilescope.change.fixes.arguments.guarded import cause_of, recompiled_function
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.shell import Shell
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.neutral import neutral_for
from compilescope.knowledge.source.flow.cuts import split_around
from compilescope.knowledge.source.flow.purity import first
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import parameters_of, statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    guarded = cause_of(subject).subject.removeprefix("type(").removesuffix(")")
    module, function = recompiled_function(subject)
    if not isinstance(function, cst.FunctionDef) or guarded not in parameters_of(function):
        raise NotMeant(f"`{guarded}` is not a parameter of the compiled function")
    defaults = dict(_defaults(module, function))
    if guarded not in defaults:
        neutral = neutral_for(module, function, guarded)
        raise Refused(
            f"`{guarded}` is None in some calls, and the function makes no tensor for it: that takes "
            "two graphs, however often it changes",
            instead=f"To have one graph, pass `{guarded}` in every call, of the same shape and "
            f"dtype: {neutral} changes nothing here."
            if neutral
            else "",
        )
    for name, (_, value) in defaults.items():
        found = first(module, [value], "unknown", "costly")
        if found is not None and name == guarded:
            raise Refused(found.words.replace("the branch", "the default"))
    outside = [statement for statement, _ in defaults.values()]
    edit = Edit(module)
    Shell(edit, function, split_around(module, statements_of(function), outside)).write()
    return Patch(edit.files())


def _defaults(
    module: SourceModule, function: cst.FunctionDef
) -> Iterator[tuple[str, tuple[cst.BaseStatement, cst.BaseExpression]]]:
    """By parameter: the statement that gives it a value where it is None, and the value."""
    known = parameters_of(function)
    for statement in statements_of(function):
        assigned = _only_assignment(statement)
        if assigned is None:
            continue
        name, value = module.code(assigned.targets[0].target), assigned.value
        test = statement.test if isinstance(statement, cst.If) else None
        if test is None and isinstance(value, cst.IfExp) and module.code(value.orelse) == name:
            test, value = value.test, value.body
        if name in known and test is not None and module.code(test) == f"{name} is None":
            yield name, (statement, value)


def _only_assignment(statement: cst.BaseStatement) -> cst.Assign | None:
    """`mask = value`, also as all that an `if` does."""
    if isinstance(statement, cst.If):
        lines = statement.body.body if statement.orelse is None else ()
        inner = lines[0] if len(lines) == 1 else None
        if isinstance(inner, cst.BaseSmallStatement):
            return inner if _is_plain(inner) else None
        return _only_assignment(inner) if isinstance(inner, cst.SimpleStatementLine) else None
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return parts[0] if len(parts) == 1 and _is_plain(parts[0]) else None


def _is_plain(part: cst.CSTNode) -> TypeGuard[cst.Assign]:
    return isinstance(part, cst.Assign) and len(part.targets) == 1


FIX = Fix(
    id="default-outside",
    title="make the default before the graph",
    rules=frozenset({"recompile/none-or-value"}),
    order=80,
    kind="source",
    why="The function does the same in the same order. Dynamo skips its own frame (not its "
    "callees), and the function that computes is always given a tensor.",
    propose=_propose,
)
