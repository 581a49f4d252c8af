"""New values for what a mask picks, written over all of the tensor, in place."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.masks import Pick, Picked, check_mask, pick_of, read_elementwise
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.replacing import replaced
from compilescope.fixes.source.values import bare, is_one_number
from compilescope.fixes.subject import Subject

_OPERATORS: dict[type[cst.BaseAugOp], str] = {
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
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
    elif isinstance(only, cst.AugAssign) and type(only.operator) in _OPERATORS:
        target, operator = only.target, _OPERATORS[type(only.operator)]
    else:
        raise NotMeant("nothing is written through a mask")
    written = pick_of(module, target)
    if written is None or not isinstance(written.values, (cst.Name, cst.Attribute)):
        raise NotMeant("nothing is written through a mask")
    check_mask(subject, written)
    edit = Edit(module)
    value = _value(subject, edit, only.value, written, operator == "/")
    kept = module.code(written.values)
    new = f"{kept} {operator} {value}" if operator else value
    where = f"{edit.module_name('torch')}.where({module.code(bare(written.mask))}, {new}, {kept})"
    edit.replace(only, edit.statements(f"{kept}.copy_({where})")[0].body[0])  # type: ignore
    return Patch(edit.files())


def _value(
    subject: Subject, edit: Edit, value: cst.BaseExpression, written: Pick, divides: bool
) -> str:
    """The new values, for all elements."""
    module = subject.module
    if is_one_number(subject, value):
        return _as_operand(module, value)
    found = Picked()
    read_elementwise(subject, value, found)
    masks = {module.code(each.mask) for each in [written, *found.picks]}
    if len(masks) != 1 or not found.picks:
        raise Refused("what is read and what is written are not selected by the same mask")
    fill = "1" if found.steep or divides else "0"
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
    examples=(
        FixExample(
            bad="""import torch


def f(x):
    y = x.clone()
    y[y > 0] *= 2  # louder
    return y


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    y = x.clone()
    y.copy_(torch.where(y > 0, y * 2, y))  # louder
    return y


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import torch


def f(x):
    y = x.clone()
    y[y < 0] = y[y < 0].abs() + 1
    return y


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    y = x.clone()
    y.copy_(torch.where(y < 0, (torch.where(y < 0, y, 0).abs() + 1), y))
    return y


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x, values):
    y = x.clone()
    y[torch.nonzero(y > 0)] = values
    return y


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(1))
""",
            because="unknown whether",
        ),
    ),
)
