"""Keeps the gradient of the side not taken zero: what it divides by is one there.

`torch.where(c, x / n, x)` multiplies the derivative of `x / n` with zero where `c` is false, and
zero times infinity is NaN. With `x / torch.where(c, n, 1)` it is finite there, and where `c` is
true nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import is_tensor, needs_grad
from compilescope.knowledge.source.flow.aliasing import runs_without_grad
from compilescope.knowledge.source.flow.purity import first, operator_of, remarks
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import replaced
from compilescope.knowledge.source.trees import cst

_AT_ONE = frozenset({"sqrt", "rsqrt", "log", "log2", "log10", "log1p", "reciprocal"})
"""Operators of one tensor whose derivative is finite at one."""
_DIVISIONS = frozenset({"div", "divide", "true_divide"})


def is_steep(subject: Subject, nodes: Sequence[cst.CSTNode]) -> bool:
    """May the gradient be NaN where their values are thrown away?"""
    steep = first(subject.module, list(nodes), "steep")
    if steep is None or runs_without_grad(subject.module, subject.statement):
        return False
    return needs_grad(subject, list(nodes))


def guarded(
    subject: Subject, node: cst.BaseExpression, test: str, torch: str, *, otherwise: bool = False
) -> str:
    """Its code, with one in place of what is dangerous unless `test` is true (`otherwise`: false).
    `test` is what the code calls a bool tensor of no dimensions."""
    module = subject.module
    new: dict[cst.CSTNode, cst.BaseExpression] = {}
    for remark in remarks(module, node):
        if remark.concern != "steep" or remark.steep is None:
            continue
        operand = _operand(subject, remark.steep)
        if operand is None or not is_tensor(subject, operand) or first(module, [operand], "steep"):
            raise Refused(remark.words)
        bare = module.code(operand.with_changes(lpar=[], rpar=[]))
        sides = f"1, {bare}" if otherwise else f"{bare}, 1"
        made = cst.parse_expression(
            f"{torch}.where({test}, {sides})", config=module.tree.config_for_parsing
        )
        new[operand] = made
    return module.code(replaced(node, new))


def _operand(subject: Subject, node: cst.CSTNode) -> cst.BaseExpression | None:
    """What makes the derivative infinite; None where nothing but the whole does."""
    if isinstance(node, cst.BinaryOperation):
        return node.right if isinstance(node.operator, cst.Divide) else None
    if not isinstance(node, cst.Call) or any(arg.star or arg.keyword for arg in node.args):
        return None
    name = operator_of(subject.module, node)
    given = [arg.value for arg in node.args]
    if isinstance(node.func, cst.Attribute) and is_tensor(subject, node.func.value):
        given.insert(0, node.func.value)
    if name in _AT_ONE and len(given) == 1:
        return given[0]
    return given[1] if name in _DIVISIONS and len(given) == 2 else None
