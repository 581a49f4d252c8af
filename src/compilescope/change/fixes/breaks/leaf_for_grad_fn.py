"""`t.is_leaf` instead of `t.grad_fn is None`."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    module, edit = subject.module, Edit(subject.module)
    read = next((each for each in module.walk(subject.node) if _is_read(each)), None)
    if not isinstance(read, cst.Attribute):
        raise NotMeant("`grad_fn` is not read by name here")
    leaf = read.with_changes(attr=cst.Name("is_leaf"), lpar=(), rpar=())
    above = module.parent(read)
    test = module.parent(above) if isinstance(above, cst.ComparisonTarget) else above
    if isinstance(test, cst.Comparison) and test.left is read and len(test.comparisons) == 1:
        compared = test.comparisons[0]
        if not (isinstance(compared.comparator, cst.Name) and compared.comparator.value == "None"):
            raise Refused("`grad_fn` is compared with something other than None")
        if isinstance(compared.operator, (cst.Is, cst.Equal)):
            new: cst.BaseExpression = leaf
        elif isinstance(compared.operator, (cst.IsNot, cst.NotEqual)):
            new = cst.UnaryOperation(cst.Not(), leaf)
        else:
            raise Refused("`grad_fn` is compared with None by something other than `is` or `==`")
        edit.replace(test, new.with_changes(lpar=test.lpar, rpar=test.rpar))
        return Patch(edit.files())
    if isinstance(above, (cst.If, cst.IfExp)) and above.test is read:
        edit.replace(read, cst.UnaryOperation(cst.Not(), leaf))
        return Patch(edit.files())
    if isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Not):
        edit.replace(above, leaf)
        return Patch(edit.files())
    raise Refused("the autograd node itself is used, not just whether it exists")


def _is_read(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "grad_fn"


FIX = Fix(
    id="leaf-for-grad-fn",
    title="use is_leaf instead of grad_fn is None",
    rules=frozenset({"GB0104"}),
    order=20,
    kind="source",
    why="By PyTorch's definition, a tensor is a leaf exactly when it has no `grad_fn`. Dynamo "
    "can trace `is_leaf` but not `grad_fn`.",
    propose=_propose,
)
