"""A list instead of an iterator that is handed to a compiled function, or kept by it."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.fixes.arguments.calls import argument_for, calls_of
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.source.flow.aliasing import changes_in_place
from compilescope.source.flow.purity import remarks
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.bindings import definitions_of, parameters_of
from compilescope.source.syntax.edit import Edit
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst

_LAZY = (
    "builtins.zip",
    "builtins.map",
    "builtins.filter",
    "builtins.reversed",
    "builtins.enumerate",
)
_CONSUMING = ("builtins.sum", "builtins.list", "builtins.tuple", "builtins.max", "builtins.min")


def _propose(subject: Subject) -> Patch:
    module, function = subject.module, subject.function
    name = _iterated(subject)
    if name not in parameters_of(function):
        raise NotMeant(f"`{name}` is not a parameter of the function")
    _check_uses(module, function, name)
    edit = Edit(module)
    found = False
    for call in calls_of(subject, function):
        given = argument_for(function, call, name)
        if given is None:
            continue
        if isinstance(given, cst.GeneratorExp):
            new: cst.BaseExpression = cst.ListComp(given.elt, given.for_in)
        elif module.calls(given, *_LAZY):
            new = edit.expression(f"list({module.code(given)})")
        elif (generator := _generator(module, given)) is not None:
            _check_generator(subject, generator, name)
            new = edit.expression(f"list({module.code(given)})")
        elif isinstance(given, (cst.Name, cst.Attribute)):
            raise Refused(f"`{module.code(given)}` is an iterator that other code may hold too")
        else:
            continue
        edit.replace(given, new)
        found = True
    if not found:
        raise NotMeant(f"no call in this file creates the iterator passed as `{name}`")
    return Patch(edit.files())


def _generator(module: SourceModule, given: cst.BaseExpression) -> cst.FunctionDef | None:
    """The function of this file whose call makes the iterator."""
    func = given.func if isinstance(given, cst.Call) else None
    if not isinstance(func, cst.Name):
        return None
    for found in definitions_of(module, func):
        if isinstance(found, cst.FunctionDef) and any(
            isinstance(each, cst.Yield) and module.function_of(each) is found
            for each in module.walk(found.body)
        ):
            return found
    return None


def _check_generator(subject: Subject, generator: cst.FunctionDef, name: str) -> None:
    """Raises `Refused` where it shows that all of it runs before the function does, and not turn
    by turn with it."""
    module, function = subject.module, subject.function
    for each in module.walk(function.body):
        if isinstance(each, (cst.Break, cst.Return)) and _is_in_loop(module, each, name):
            raise Refused(f"the loop over `{name}` may end before the iterator does")
    made = generator.name.value
    if any(isinstance(each, cst.While) for each in module.walk(generator.body)):
        raise Refused(f"`{made}` may never end")
    for found in remarks(module, generator.body):
        if found.concern in ("effect", "random", "unknown") and "`yield" not in found.words:
            raise Refused(f"`{made}` does more than compute, in turn with the function")
    if any(True for _ in changes_in_place(module, function.body)):
        raise Refused("the function changes tensors in place, which the iterator may read")


def _is_in_loop(module: SourceModule, node: cst.CSTNode, name: str) -> bool:
    return any(
        isinstance(above, cst.For) and name in module.names_in(above.iter)
        for above in module.ancestors(node)
    )


def _iterated(subject: Subject) -> str:
    """The name of what is iterated over where Dynamo stops."""
    statement = subject.statement
    if isinstance(statement, cst.For) and isinstance(statement.iter, cst.Name):
        return statement.iter.value
    for node in subject.module.walk(subject.node):
        if isinstance(node, cst.CompFor) and isinstance(node.iter, cst.Name):
            return node.iter.value
        if isinstance(node, cst.Call) and subject.module.calls(node, *_CONSUMING) and node.args:
            first = node.args[0].value
            if isinstance(first, cst.Name):
                return first.value
    raise NotMeant("what is iterated over here has no name")


def _check_uses(module: SourceModule, function: cst.FunctionDef, name: str) -> None:
    """Raises `Refused` unless it is gone through once: a list can be gone through again."""
    uses = list(_uses(module, function, name))
    if len(uses) != 1:
        raise Refused(
            f"`{name}` is used more than once: a list would not be exhausted by the first use"
        )
    above = module.parent(uses[0])
    if isinstance(above, (cst.For, cst.CompFor)) and above.iter is uses[0]:
        if module.around(above, cst.For, cst.While) is not None:
            raise Refused(f"`{name}` is iterated over inside a loop")
        return
    if isinstance(above, cst.Arg) and module.calls(module.parent(above) or above, *_CONSUMING):
        return
    raise Refused(f"`{name}` is used as an iterator")


def _uses(module: SourceModule, function: cst.FunctionDef, name: str) -> Iterator[cst.Name]:
    for node in module.walk(function.body):
        if isinstance(node, cst.Name) and node.value == name and name in module.names_in(node):
            yield node


FIX = Fix(
    id="list-for-iterator",
    title="use a list instead of an iterator",
    rules=frozenset({"GB0811", "GB4347", "GB1752", "GB9493"}),
    order=30,
    kind="caller",
    why="The iterator is created for this call only and consumed once, so a list of its items "
    "is the same. Dynamo can guard on a list.",
    propose=_propose,
)
