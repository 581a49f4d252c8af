"""New values for what a mask picks, written over all of the tensor, in place."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.masks import (
    Pick,
    Picked,
    check_mask,
    fill_of,
    pick_of,
    read_elementwise,
)
from compilescope.change.fixes.values.tensors import bare, is_one_number, needs_grad
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit, replaced
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_OPERATORS = {
    "AddAssign": "+",
    "SubtractAssign": "-",
    "MultiplyAssign": "*",
    "DivideAssign": "/",
}


def _propose(subject: Subject) -> Patch:
    module = subject.module
    line = subject.statement
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise NotMeant("it shares a line with other code")
    only = line.body[0]
    operator = ""
    if isinstance(only, cst.Assign) and len(only.targets) == 1:
        target = only.targets[0].target
    elif isinstance(only, cst.AugAssign) and type(only.operator).__name__ in _OPERATORS:
        target, operator = only.target, _OPERATORS[type(only.operator).__name__]
    else:
        raise NotMeant("nothing is written through a mask")
    written = pick_of(module, target)
    if written is None or not isinstance(written.values, (cst.Name, cst.Attribute)):
        raise NotMeant("nothing is written through a mask")
    check_mask(subject, written)
    edit = Edit(module)
    value = _value(subject, edit, only.value, written, operator == "/")
    kept, mask = module.code(written.values), module.code(bare(written.mask))
    torch = edit.module_name("torch")
    new = value
    if operator:
        old = kept
        if operator in "*/" and not isinstance(only.value, (cst.Integer, cst.Float)):
            # The gradient of the factor is a sum over all elements: zero times infinity is NaN.
            old = f"{torch}.where({mask}, {kept}, 1)"
        new = f"{old} {operator} {value}"
    where = f"{torch}.where({mask}, {new}, {kept})"
    edit.replace(only, edit.statements(f"{kept}.copy_({where})")[0].body[0])  # type: ignore
    return Patch(edit.files())


def _value(
    subject: Subject, edit: Edit, value: cst.BaseExpression, written: Pick, divides: bool
) -> str:
    """The new values, for all elements."""
    module = subject.module
    if is_one_number(subject, value):
        constant = isinstance(value, (cst.Integer, cst.Float))
        if divides and not constant and needs_grad(subject, [value]):
            raise Refused("where nothing is selected, the gradient of a zero divisor would be NaN")
        return _as_operand(module, value)
    found = Picked()
    read_elementwise(subject, value, found)
    masks = {module.code(each.mask) for each in [written, *found.picks]}
    if len(masks) != 1 or not found.picks:
        raise Refused("what is read and what is written are not selected by the same mask")
    fill = fill_of(subject, found, divided=divides)
    torch, mask = edit.module_name("torch"), module.code(bare(written.mask))
    filled: dict[cst.CSTNode, cst.BaseExpression] = {
        each.node: edit.expression(f"{torch}.where({mask}, {module.code(each.values)}, {fill})")
        for each in found.picks
    }
    return _as_operand(module, replaced(value, filled))


def _as_operand(module: SourceModule, node: cst.BaseExpression) -> str:
    simple = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)
    text = module.code(node)
    return text if isinstance(node, simple) or node.lpar else f"({text})"


FIX = Fix(
    id="masked-store",
    title="use copy_ with torch.where instead of masked assignment",
    rules=frozenset({"dynamic-shape", "GB0036"}),
    order=46,
    kind="source",
    why="Where the mask is true, the new values are written; elsewhere, the old ones again. It "
    "is the same tensor, changed in place as before.",
    propose=_propose,
)
