"""A class that a compiled function defines anew in each call, moved to the top of the file."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.toplevel import check_movable, top_names, top_statement
from compilescope.knowledge.source.trees import cst, kinds

_SHARED = kinds(
    lambda: (cst.List, cst.Dict, cst.Set, cst.Call, cst.ListComp, cst.DictComp, cst.SetComp)
)


def _propose(subject: Subject) -> Patch:
    module = subject.module
    made = _class_at(subject)
    name = made.name.value
    function = module.function_of(made)
    if function is None:
        raise NotMeant("the class is already at the top of the file")
    if not isinstance(made.body, cst.IndentedBlock):
        raise Refused("the class is defined on one line")
    place = top_statement(module, function)
    check_movable(module, [made], place, f"the class `{name}`")
    _check_unshared(module, function, made)
    edit = Edit(module)
    new = name if name not in top_names(module) else module.fresh_name(name)
    if new != name:
        raise Refused(f"the file already has another `{name}` at top level")
    edit.put_definition_before(place, [made])
    edit.move_away(made)
    return Patch(edit.files())


def _class_at(subject: Subject) -> cst.ClassDef:
    for each in (subject.node, *subject.module.ancestors(subject.node)):
        if isinstance(each, cst.ClassDef):
            return each
        if isinstance(each, cst.FunctionDef):
            break
    statement = subject.statement
    if isinstance(statement, cst.ClassDef):
        return statement
    for each in subject.module.walk(statement):
        # A class begins, for LibCST, after its decorators.
        if isinstance(each, cst.ClassDef) and any(
            subject.module.line(mark) == subject.line for mark in each.decorators
        ):
            return each
    raise NotMeant("no class is defined here")


def _check_unshared(module: SourceModule, function: cst.FunctionDef, made: cst.ClassDef) -> None:
    """Raises `Refused` where it matters that each call has a class of its own."""
    name = made.name.value
    for part in made.body.body:
        parts = part.body if isinstance(part, cst.SimpleStatementLine) else ()
        for small in parts:
            value = getattr(small, "value", None)
            if isinstance(small, (cst.Assign, cst.AnnAssign)) and isinstance(value, _SHARED):
                raise Refused(f"`{name}` has an attribute that all calls would share")
    for node in module.walk(function.body):
        if isinstance(node, (cst.AssignTarget, cst.AugAssign)):
            target = node.target
            if isinstance(target, cst.Attribute) and _is_name(target.value, name):
                raise Refused(f"the function changes the class `{name}` itself")
            if _is_name(target, name):
                raise Refused(f"the function also uses the name `{name}` for something else")
        elif (
            isinstance(node, cst.Call)
            and module.calls(node, "builtins.setattr")
            and node.args
            and _is_name(node.args[0].value, name)
        ):
            raise Refused(f"the function changes the class `{name}` itself")


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


FIX = Fix(
    id="class-at-top",
    title="define the class once, at the top of the file",
    rules=frozenset({"GB8977", "GB0075", "GB0082", "outside-call"}),
    order=40,
    kind="source",
    why="The class uses none of the function's variables, so defining it once is the same as "
    "defining it in each call, as long as nothing changes the class itself.",
    propose=_propose,
)
