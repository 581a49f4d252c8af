"""`and`, `or` and `not` between truths that are tensors, as operators on tensors."""

from __future__ import annotations

from compilescope.change.fixes.branches.condition import gives_booleans, read_test
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import is_one_number
from compilescope.knowledge.source.flow.aliasing import is_fresh
from compilescope.knowledge.source.flow.liveness import reads
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit, replace_expression
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    module, whole = subject.module, _operation(subject)
    for each in module.walk(whole):
        if each is whole or not _is_joined(module.parent(each)) or _is_joined(each):
            continue
        if isinstance(each, cst.BaseExpression) and not gives_booleans(subject, each):
            raise Refused(f"`{short(module, each)}` may not be a bool")
    truth = read_test(subject, whole)
    if truth.static:
        raise Refused(f"`{truth.static}` is not a tensor")
    if not _is_same_value(subject, whole):
        _check_use(subject, whole)
    edit = Edit(module)
    text = truth.tensor
    if getattr(whole, "lpar", ()) and not truth.atomic:
        text = f"({text})"
    replace_expression(edit, whole, edit.expression(text))
    return Patch(edit.files())


def _is_joined(node: cst.CSTNode | None) -> bool:
    """By `and`, `or` or `not`."""
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Not)
    return isinstance(node, cst.BooleanOperation)


def _operation(subject: Subject) -> cst.BaseExpression:
    """The whole of what is joined, where its value is used and not only asked for."""
    module, found = subject.module, None
    for each in [subject.node, *module.ancestors(subject.node)]:
        if _is_joined(each):
            found = each
        elif found is not None or not isinstance(each, cst.BaseExpression):
            break
    if not isinstance(found, cst.BaseExpression):
        raise NotMeant("nothing is combined with `and`, `or` or `not`")
    above = module.parent(found)
    if isinstance(above, (cst.If, cst.While, cst.IfExp, cst.Assert, cst.Comparison)):
        raise NotMeant("it is the condition of a branch")
    return found


def _is_same_value(subject: Subject, node: cst.BaseExpression) -> bool:
    """Is what Python gives, one of the operands, as good as the tensor of both? No bool of
    Python's, no tensor that somebody else may hold, and of no dimensions."""
    if isinstance(node, cst.BooleanOperation):
        return all(_is_same_value(subject, each) for each in (node.left, node.right))
    if _is_joined(node):  # `not`
        return False
    return is_one_number(subject, node) and is_fresh(subject.module, node)


def _check_use(subject: Subject, whole: cst.BaseExpression) -> None:
    """As a tensor it must not be asked for its truth again, and is no Python bool for others."""
    module = subject.module
    above = module.parent(whole)
    if isinstance(above, cst.BinaryOperation):
        return
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    if not isinstance(target, cst.Name):
        raise Refused("other code may need the Python value")
    for each in reads(module, subject.function.body):
        if each.value != target.value:
            continue
        near = module.parent(each)
        operand = isinstance(near, (cst.BinaryOperation, cst.Comparison))
        if not operand and not _is_given_to_torch(subject, each):
            raise Refused(f"`{target.value}` may be used as a Python bool")


def _is_given_to_torch(subject: Subject, name: cst.Name) -> bool:
    """`torch.where(flag, ...)`, `flag.float()`."""
    module = subject.module
    near = module.parent(name)
    if isinstance(near, cst.Arg):
        call = module.parent(near)
        return isinstance(call, cst.Call) and any(
            meaning.startswith("torch.") for meaning in module.meaning(call.func)
        )
    return isinstance(near, cst.Attribute) and near.value is name


FIX = Fix(
    id="tensor-logic",
    title="use & | ~ instead of and, or, not",
    rules=frozenset({"tensor-if", "tensor-truth"}),
    order=42,
    kind="source",
    why="For bools, `a & b` is the same as `a and b`. As a tensor, nothing has to wait for its "
    "value.",
    propose=_propose,
)
