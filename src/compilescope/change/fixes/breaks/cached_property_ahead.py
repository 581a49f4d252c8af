"""A `cached_property` computed where its object is made: then Dynamo finds the value, not the lock."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_STATES = "The property is computed when its object is created, not when it is first read."
_CACHED = {"functools.cached_property"}


def _propose(subject: Subject) -> Patch:
    module = subject.module
    name, made = _read(subject)
    edit = Edit(module)
    known = False
    for assignment, variable in _objects(module, made.name.value):
        line = module.statement_of(assignment)
        text = f"{variable}.{name}  # compute it once, before compiling"
        if any(module.code(each).strip() == text for each in module.following(line)):
            raise NotMeant("it is already computed ahead of time")
        edit.put_after(assignment, text)
        known = True
    if not known:
        raise Refused(f"this file does not create a `{made.name.value}` and give it a name")
    return Patch(edit.files(), states=_STATES)


def _read(subject: Subject) -> tuple[str, cst.ClassDef]:
    """The property and its class. Where a guard failed, the whole function may read it."""
    module = subject.module
    within = subject.node if subject.recompile is None else subject.function
    for node in module.walk(within):
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
            made = _owner(module, node.attr.value)
            if made is not None:
                return node.attr.value, made
    raise NotMeant("no cached property of a single class in this file is read here")


def _owner(module: SourceModule, name: str) -> cst.ClassDef | None:
    """The class that has the property; None where several do."""
    found = [
        module.class_of(each)
        for each in module.walk()
        if isinstance(each, cst.FunctionDef)
        and each.name.value == name
        and any(module.meaning(mark.decorator) & _CACHED for mark in each.decorators)
    ]
    return found[0] if len(found) == 1 else None


def _objects(module: SourceModule, name: str) -> list[tuple[cst.Assign, str]]:
    """Assignments that make one and give it a name, compiled or not; the first of each name."""
    found = []
    for each in module.walk():
        if not isinstance(each, cst.Assign) or len(each.targets) != 1:
            continue
        target, value = each.targets[0].target, each.value
        if module.calls(value, "torch.compile") and isinstance(value, cst.Call) and value.args:
            value = value.args[0].value
        if (
            isinstance(target, cst.Name)
            and isinstance(value, cst.Call)
            and isinstance(value.func, cst.Name)
            and value.func.value == name
        ):
            found.append((each, target.value))
    return found


FIX = Fix(
    id="cached-property-ahead",
    title="compute the cached property before compiling",
    rules=frozenset({"context-manager", "recompile/key-change"}),
    order=105,
    kind="caller",
    why="Up to Python 3.11, the first read of a `functools.cached_property` takes a lock, "
    "which Dynamo cannot trace. From Python 3.12 on it sets an attribute that the first graph was "
    "not compiled for. After that it is an attribute like any other.",
    propose=_propose,
)
