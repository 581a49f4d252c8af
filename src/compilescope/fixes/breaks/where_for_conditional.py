"""A conditional expression on a tensor, as `torch.where`."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.breaks._branching import RULES, conditional_of, torch_name
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.comments import replace_expression
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.kinds import check_alike
from compilescope.fixes.source.numbers import check_number, check_uses
from compilescope.fixes.source.predication import check_pure, check_test
from compilescope.fixes.source.snippets import number
from compilescope.fixes.source.truth import read_test
from compilescope.fixes.source.values import is_static
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    whole = conditional_of(subject)
    edit = Edit(subject.module)
    made = edit.expression(_picked(subject, whole, torch_name(subject, edit)))
    replace_expression(edit, whole, made)
    return Patch(edit.files())


def _picked(subject: Subject, node: cst.IfExp, torch: str) -> str:
    truth = read_test(subject, node.test)
    for side in (node.body, node.orelse):
        if not isinstance(side, cst.IfExp):
            check_pure(subject, (side,))
    _check_kinds(subject, node)
    one = _side(subject, node.body, torch)
    other = _side(subject, node.orelse, torch)
    made = f"{torch}.where({truth.tensor}, {one}, {other})"
    if not truth.static:
        return made
    if truth.joined_by == "and":
        return f"({made} if {truth.static} else {other})"
    return f"({one} if {truth.static} else {made})"


def _side(subject: Subject, node: cst.BaseExpression, torch: str) -> str:
    if isinstance(node, cst.IfExp) and not is_static(subject, node.test):
        check_test(subject, node.test)
        return _picked(subject, node, torch)
    return subject.module.code(node)


def _check_kinds(subject: Subject, node: cst.IfExp) -> None:
    """A number becomes a tensor, which must not show."""
    if not any(isinstance(side, cst.IfExp) for side in (node.body, node.orelse)):
        check_alike(subject, node.body, node.orelse)
    sides = [side for side in (node.body, node.orelse) if is_static(subject, side)]
    for side in sides:
        check_number(subject, side)
    if not sides:
        return
    module = subject.module
    above = module.parent(node)
    while isinstance(above, cst.IfExp):
        above = module.parent(above)
    if isinstance(above, (cst.BinaryOperation, cst.AugAssign)):
        return
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    if isinstance(target, cst.Name):
        check_uses(subject, subject.function, subject.statement, target.value)
    elif len(sides) == 2 or number(sides[0]) is None:
        raise Refused("its value is a Python value, which would become a tensor")


FIX = Fix(
    id="where-for-conditional",
    title="use torch.where instead of the conditional expression",
    rules=RULES,
    order=41,
    kind="source",
    why="Both sides only compute values, so computing both and selecting one with "
    "`torch.where` gives the same result.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def f(x, y):
    z = (x * 2  # up
         if x.sum() > y.sum()
         else x - 1)
    return z + 1


torch.compile(f, backend="eager")(torch.ones(3), torch.zeros(3))
""",
            good="""import torch


def f(x, y):
    # up
    z = torch.where(x.sum() > y.sum(), x * 2, x - 1)
    return z + 1


torch.compile(f, backend="eager")(torch.ones(3), torch.zeros(3))
""",
        ),
        FixExample(
            bad="""import torch


def f(x):
    scale = 2.0 if x.max() > 4 else 0.5 if x.min().item() < 0 else 1
    return x * scale


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    scale = torch.where(x.max() > 4, 2.0, torch.where(x.min() < 0, 0.5, 1))
    return x * scale


torch.compile(f, backend="eager")(torch.ones(3))
""",
            note="A number that is only an operand may be a tensor of no dimensions.",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    steps = 3 if x.sum() > 0 else 1
    for _ in range(steps):
        x = x * 2
    return x


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="used as one later",
        ),
    ),
)
