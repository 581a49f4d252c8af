"""`one_hot` without a number of classes, where what follows takes no other number of them.

A matrix product or a loss of the result raises unless it is as wide as something of the program's,
so that is its width whenever the function returns at all. Where nothing says so, nobody knows it:
arithmetic broadcasts a result of width one.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import only_value
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.change.fixes.values.required_sizes import Size, find_sizes
from compilescope.change.fixes.values.tensors import facts_of
from compilescope.knowledge.source.flow.cuts import is_light_value
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_BY_HAND = (
    "Pass `num_classes=`, the number of classes that the model is made for: a batch without the "
    "highest label then has the same width too."
)
# torch 2.13: a compiled `one_hot` compares with a range, and raises for no label.
_STATES = (
    "A batch whose highest label is not `{} - 1` raises no error any more: a class that does not "
    "occur is a column of zeros, and a label beyond the last class may be a row of zeros."
)
_SAME_WIDTH = frozenset(
    [
        "float",
        "double",
        "half",
        "bfloat16",
        "long",
        "int",
        "bool",
        "to",
        "type",
        "type_as",
        "detach",
    ]
)
_PRODUCTS = frozenset({"matmul", "mm", "bmm"})
_LOSSES = frozenset({"cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits"})
"""Losses that raise where the sizes of what they are given differ."""
_LINEAR = "torch.nn.modules.linear.Linear"


def _propose(subject: Subject) -> Patch:
    module, call = subject.module, subject.node
    if not isinstance(call, cst.Call) or operator_of(module, call) != "one_hot":
        raise NotMeant("no `one_hot` is called here")
    if len(call.args) != 1 or call.args[0].star:
        raise Refused("the number of classes is passed already", instead=_BY_HAND)
    found = next(find_sizes(subject, call, _asked_by, _cast), None)
    if found is None:
        raise Refused("nothing here says how many classes there are", instead=_BY_HAND)
    width = f"{module.code(found.of)}{found.which}"
    edit = Edit(module)
    given = cst.Arg(
        edit.expression(width),
        keyword=cst.Name("num_classes"),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    first = call.args[0].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    edit.replace(call, call.with_changes(args=[first, given]))
    return Patch(
        edit.files(),
        states=_STATES.format(width),
        allows=frozenset({"fewer-errors", "exception-type"}),
    )


def _cast(subject: Subject, node: cst.BaseExpression) -> cst.BaseExpression:
    """With what leaves its width as it is: all of `one_hot(y).float()`."""
    module = subject.module
    while True:
        method = module.parent(node)
        call = module.parent(method) if isinstance(method, cst.Attribute) else None
        if not isinstance(call, cst.Call) or call.func is not method:
            return node
        assert isinstance(method, cst.Attribute)
        if method.attr.value not in _SAME_WIDTH:
            return node
        node = call


def _asked_by(subject: Subject, node: cst.BaseExpression) -> Iterator[Size]:
    """By the operator that it is given to."""
    module = subject.module
    above = module.parent(node)
    if isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.MatrixMultiply):
        if above.left is node:
            yield from _rows(subject, above.right)
    elif isinstance(above, cst.Attribute) and above.attr.value == "mT":
        product = module.parent(above)
        if isinstance(product, cst.BinaryOperation) and product.right is above:
            columns = isinstance(product.operator, cst.MatrixMultiply)
            if columns and _is_matrix(subject, product.left):
                yield Size(product.left, ".shape[-1]")
    elif isinstance(above, cst.Arg) and above.keyword is None:
        call = module.parent(above)
        if isinstance(call, cst.Call) and not any(arg.star for arg in call.args):
            yield from _asked_by_call(subject, call, list(call.args).index(above))


def _asked_by_call(subject: Subject, call: cst.Call, place: int) -> Iterator[Size]:
    module = subject.module
    name = operator_of(module, call)
    values = [arg.value for arg in call.args]
    if name in _PRODUCTS and place == 0 and len(values) == 2:
        yield from _rows(subject, values[1])
    elif name == "linear" and place == 0 and len(values) > 1 and is_light_value(module, values[1]):
        yield Size(values[1], ".shape[1]")
    elif name in _LOSSES and place == 1 and is_light_value(module, values[0]):
        yield Size(values[0], ".shape[-1]")
    elif place == 0 and len(values) == 1 and _is_linear(subject, call.func):
        yield Size(call.func, ".in_features")


def _rows(subject: Subject, matrix: cst.BaseExpression) -> Iterator[Size]:
    if _is_matrix(subject, matrix):
        yield Size(matrix, ".shape[0]")


def _is_matrix(subject: Subject, node: cst.BaseExpression) -> bool:
    """Of two dimensions, and nothing is computed to have it once more."""
    if not is_light_value(subject.module, node):
        return False
    kind = kind_of(subject, node)
    if kind.shape is None and not subject.program.facts.seen:
        shown = short(subject.module, node)
        raise NeedsRun(f"only a run can show how many dimensions `{shown}` has")
    return kind.shape is not None and len(kind.shape) == 2


def _is_linear(subject: Subject, func: cst.BaseExpression) -> bool:
    """A layer that raises unless its input has the width that it was made for."""
    seen = facts_of(subject, func)
    if seen:
        return all(fact.type == _LINEAR for fact in seen)
    try:
        made = only_value(subject, func)
    except Refused:
        return False
    return isinstance(made, cst.Call) and subject.module.calls(made, "torch.nn.Linear", _LINEAR)


FIX = Fix(
    id="one-hot-classes",
    title="pass one_hot the number of classes",
    rules=frozenset({"GB0246"}),
    order=215,
    kind="scaffold",
    why="What follows raises unless the result is as wide as a tensor or layer of the program, so "
    "that width is what `one_hot` read from the labels in every call that returned. Batches that "
    "raised an error return as well then, which only the author can want.",
    propose=_propose,
)
