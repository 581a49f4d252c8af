"""`torch.allclose` and `torch.equal`, which give a Python bool, as comparisons of elements."""

from __future__ import annotations

from compilescope.fixes.subject import Subject
from compilescope.fixes.values.promotion import category
from compilescope.fixes.values.tensors import facts_of
from compilescope.source.flow.purity import operator_of, short
from compilescope.source.refusals import NeedsRun, Refused
from compilescope.source.trees import cst


def all_close(subject: Subject, node: cst.BaseExpression) -> str | None:
    """`torch.isclose(a, b).all()` of `torch.allclose(a, b)`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    if operator_of(subject.module, node) != "allclose":
        return None
    func = node.func.with_changes(attr=cst.Name("isclose"))
    return f"{subject.module.code(node.with_changes(func=func))}.all()"


def equal_sides(subject: Subject, node: cst.BaseExpression) -> tuple[str, str] | None:
    """The sides of `torch.equal(a, b)`, of which the elements can be compared if the sizes are
    equal."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    module = subject.module
    if operator_of(module, node) != "equal":
        return None
    sides = [arg.value for arg in node.args]
    sides = sides if len(sides) == 2 else [node.func.value, *sides]
    shown = short(module, node)
    if not all(isinstance(side, (cst.Name, cst.Attribute)) for side in sides):
        raise Refused(f"`{shown}` compares more than two names, each of which would be read twice")
    seen = [facts_of(subject, side) for side in sides]
    if not all(seen):
        raise NeedsRun(f"the source does not show the dtypes of `{shown}`")
    dtypes = {fact.dtype for facts in seen for fact in facts}
    if len(dtypes) > 1:
        raise Refused(f"`{shown}` meets several dtypes")
    if category(dtypes.pop()) > category("int64"):
        # A tensor is equal to itself, though it holds NaN: the elements are not.
        raise Refused(f"`{shown}` compares numbers that may be NaN")
    one, other = map(module.code, sides)
    return one, other
