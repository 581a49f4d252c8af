"""A conditional expression on a tensor whose sides must not both be computed, as `torch.cond`."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.breaks._branching import RULES, conditional_of, torch_name
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.closures import Closures
from compilescope.fixes.source.comments import replace_expression
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.layers import check_layers
from compilescope.fixes.source.truth import read_test
from compilescope.fixes.source.values import is_static
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    whole = conditional_of(subject)
    edit = Edit(subject.module)
    made = edit.expression(_chosen(subject, whole, torch_name(subject, edit)))
    replace_expression(edit, whole, made)
    return Patch(edit.files())


def _chosen(subject: Subject, node: cst.IfExp, torch: str) -> str:
    truth = read_test(subject, node.test)
    if truth.static:
        raise Refused(f"`{truth.static}` in its condition is not a tensor")
    Closures(subject, subject.function, subject.statement).check_returned(node.body, node.orelse)
    check_layers(subject, [[node.body], [node.orelse]])
    sides = [_side(subject, side, torch) for side in (node.body, node.orelse)]
    return f"{torch}.cond({truth.tensor}, lambda: {sides[0]}, lambda: {sides[1]}, ())"


def _side(subject: Subject, node: cst.BaseExpression, torch: str) -> str:
    if isinstance(node, cst.IfExp) and not is_static(subject, node.test):
        return _chosen(subject, node, torch)
    if is_static(subject, node):
        raise Refused(f"`{subject.module.code(node)}` is a Python value, not a tensor")
    closures = Closures(subject, subject.function, subject.statement)
    closures.check([node])
    made = closures.returned(node)
    return f"({made})" if isinstance(node, cst.Tuple) else made


FIX = Fix(
    id="cond-for-conditional",
    title="use torch.cond instead of the conditional expression",
    rules=RULES,
    order=62,
    kind="source",
    why="`torch.cond` puts both sides in the graph and runs the one the condition selects.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def f(x, y):
    z = x.log() if x.min() > 0 else y
    return z * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3))
""",
            good="""import torch


def f(x, y):
    z = torch.cond(x.min() > 0, lambda: x.log(), lambda: y.clone(), ())
    return z * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    z = x.log() if x.min() > 0 else None
    return x if z is None else z


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="is a Python value",
        ),
    ),
)
