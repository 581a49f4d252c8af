"""What a name or an attribute of `self` is set to, where the file says it in one place only."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.fixes.subject import Subject
from compilescope.source.refusals import Refused
from compilescope.source.syntax.bindings import definitions_of
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst


def only_value(subject: Subject, node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression that a name, or `self.x`, always stands for. Raises `Refused` where there are
    several, or none in this file."""
    module = subject.module
    shown = module.code(node)
    if isinstance(node, cst.Name):
        values = [_value_of(module, each) for each in definitions_of(module, node)]
    elif isinstance(node, cst.Attribute) and _is_self(node.value):
        values = list(_set_in_class(subject, node.attr.value))
    else:
        raise Refused(f"it is unknown where `{shown}` is set")
    if len(values) != 1 or values[0] is None:
        raise Refused(f"`{shown}` is not set in exactly one place in this file")
    return values[0]


def _is_self(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"


def _value_of(module: SourceModule, node: cst.CSTNode) -> cst.BaseExpression | None:
    """Of `x = value`: not of a parameter, a loop's variable or a part of a tuple."""
    above = module.parent(node)
    if isinstance(above, cst.AssignTarget) and above.target is node:
        assign = module.parent(above)
        return assign.value if isinstance(assign, cst.Assign) else None
    if isinstance(above, cst.AnnAssign) and above.target is node:
        return above.value
    return None


def _set_in_class(subject: Subject, name: str) -> Iterator[cst.BaseExpression | None]:
    module = subject.module
    made = module.class_of(subject.function)
    if made is None:
        raise Refused("the function is not a method of a class in this file")
    if any(_sets_from_outside(module, each, name, made) for each in module.walk()):
        yield None
    for node in module.walk(made):
        if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)):
            target = node.target
            if isinstance(target, cst.Attribute) and target.attr.value == name:
                yield _value_of(module, target)


def _sets_from_outside(
    module: SourceModule, node: cst.CSTNode, name: str, made: cst.ClassDef
) -> bool:
    """`model.quiet = ...` somewhere else in the file."""
    if not isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)):
        return False
    target = node.target
    if not isinstance(target, cst.Attribute) or target.attr.value != name:
        return False
    return made not in module.ancestors(node)
