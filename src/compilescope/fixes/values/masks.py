"""Elements picked by a mask and then reduced: the same over all of them, the others at rest.

`x[mask].sum()` is `torch.where(mask, x, 0).sum()`, also where `x` is NaN outside of the mask, and
in the gradient. What is computed between the mask and the reduction is computed on a value that
does no harm, and put to rest once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compilescope.fixes.subject import Subject
from compilescope.fixes.values.facts import ValueFact
from compilescope.fixes.values.kinds import known_shape
from compilescope.fixes.values.tensors import facts_of, is_static
from compilescope.source.flow import operators
from compilescope.source.flow.aliasing import changes_in_place
from compilescope.source.flow.liveness import targets
from compilescope.source.flow.purity import operator_of, short
from compilescope.source.refusals import Refused
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst, kinds

REDUCTIONS = {"sum": "0", "mean": "0", "nansum": "0", "prod": "1", "any": "False", "all": "True"}
"""What the elements that are out are put to, so that the reduction does not see them."""
_SHAPING = operators.REDUCTIONS | operators.COSTLY | {"cumsum", "softmax", "log_softmax", "flip"}
_SHAPING |= {"roll", "tril", "triu", "cat", "stack", "pad", "outer", "repeat", "tile", "diag"}
_SHAPING |= {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "layer_norm", "normalize"}
_HARMLESS_AT_ONE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "exp", "reciprocal", "square"}
_ELEMENTWISE = (operators.PLAIN - _SHAPING) | _HARMLESS_AT_ONE
_NAMES = kinds(lambda: (cst.Name, cst.Attribute))
_OPERATORS = kinds(lambda: (cst.Add, cst.Subtract, cst.Multiply))


@dataclass(frozen=True)
class Pick:
    """`values[mask]`, or the same by `masked_select`."""

    node: cst.BaseExpression
    values: cst.BaseExpression
    mask: cst.BaseExpression


@dataclass
class Picked:
    """The elementwise expression that a reduction is over, and what it picks."""

    picks: list[Pick] = field(default_factory=list)
    steep: bool = False
    named: dict[str, Pick] = field(default_factory=dict)
    """What names stand for, where it was picked before."""


def pick_of(module: SourceModule, node: cst.CSTNode) -> Pick | None:
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        if isinstance(index, cst.Index) and index.star is None:
            return Pick(node, node.value, index.value)
        return None
    if not isinstance(node, cst.Call) or any(arg.keyword or arg.star for arg in node.args):
        return None
    if module.calls(node, "torch.masked_select") and len(node.args) == 2:
        return Pick(node, node.args[0].value, node.args[1].value)
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "masked_select" and node.args:
        return Pick(node, func.value, node.args[0].value)
    return None


def check_mask(subject: Subject, pick: Pick) -> None:
    """Is the mask one truth for every element?"""
    module = subject.module
    masks, values = facts_of(subject, pick.mask), facts_of(subject, pick.values)
    if any(fact.dtype != "bool" for fact in masks if fact.kind == "tensor"):
        raise Refused(f"`{short(module, pick.mask)}` is not a bool mask")
    if masks and values:
        if not _are_alike(pick, masks, values):
            raise Refused("the mask selects whole rows, not single elements")
        return
    if _is_about(module, pick.mask, module.code(pick.values)) or _is_like(subject, pick):
        return
    raise Refused(f"it is unknown whether `{short(module, pick.mask)}` has one bool per element")


def _are_alike(pick: Pick, masks: Sequence[ValueFact], values: Sequence[ValueFact]) -> bool:
    """As an index, a mask of as many dimensions has the same sizes; `masked_select` broadcasts."""
    if isinstance(pick.node, cst.Subscript):
        ranks = {None if fact.shape is None else len(fact.shape) for fact in (*masks, *values)}
        return len(ranks) == 1 and None not in ranks
    shapes = {known_shape(fact) for fact in (*masks, *values)}
    return len(shapes) == 1 and None not in shapes


def _is_like(subject: Subject, pick: Pick) -> bool:
    """Was something that the mask is computed of seen with the same sizes as the values?"""
    shapes = {known_shape(fact) for fact in facts_of(subject, pick.values)} - {None}
    parts = [each for each in subject.module.walk(pick.mask) if isinstance(each, _NAMES)]
    if len(shapes) != 1 or isinstance(pick.mask, (cst.Call, cst.Subscript)):
        return False
    return any({known_shape(fact) for fact in facts_of(subject, each)} == shapes for each in parts)


def check_lasting(subject: Subject, name: str, pick: Pick) -> None:
    """May the picking be put off to where the name is read?"""
    module, function = subject.module, subject.function
    made_of = module.names_in(pick.values)
    written = [t for each in module.walk(function.body) for t in targets(each)]
    if sum(isinstance(each, cst.Name) and each.value == name for each in written) != 1:
        raise Refused(f"`{name}` is set in several places")
    if any(isinstance(each, cst.Name) and each.value in made_of for each in written):
        raise Refused(f"what `{name}` is computed from is reassigned in the function")
    if any(True for _ in changes_in_place(module, function.body)):
        raise Refused("the function changes tensors in place")


def _is_about(module: SourceModule, mask: cst.BaseExpression, text: str) -> bool:
    """`x > 0`, `~torch.isnan(x)`, `(x > 0) & (x < 1)`: a truth of every element of `x`."""
    if isinstance(mask, cst.Comparison):
        sides = [mask.left, *(each.comparator for each in mask.comparisons)]
        return any(module.code(side) == text for side in sides)
    if isinstance(mask, cst.UnaryOperation):
        return _is_about(module, mask.expression, text)
    if isinstance(mask, cst.BinaryOperation):
        return _is_about(module, mask.left, text) or _is_about(module, mask.right, text)
    if isinstance(mask, cst.Call) and operator_of(module, mask) in operators.TRUTHS - {
        "any",
        "all",
    }:
        given = [arg.value for arg in mask.args[:1]]
        if isinstance(mask.func, cst.Attribute):
            given.append(mask.func.value)
        return any(module.code(each) == text for each in given)
    return False


def read_elementwise(subject: Subject, node: cst.BaseExpression, found: Picked) -> None:
    """Gather what an expression picks; raises `Refused` where it is not computed one by one."""
    module = subject.module
    known = found.named.get(node.value) if isinstance(node, cst.Name) else None
    pick = Pick(node, known.values, known.mask) if known is not None else pick_of(module, node)
    if pick is not None and not is_static(subject, pick.values):
        check_mask(subject, pick)
        found.picks.append(pick)
    elif is_static(subject, node) or isinstance(node, (cst.Integer, cst.Float)):
        return
    elif isinstance(node, cst.UnaryOperation) and isinstance(
        node.operator, (cst.Minus, cst.BitInvert)
    ):
        read_elementwise(subject, node.expression, found)
    elif isinstance(node, cst.BinaryOperation):
        _operation(subject, node, found)
    elif isinstance(node, cst.Call) and operator_of(module, node) in _ELEMENTWISE:
        _call(subject, node, found)
    else:
        raise Refused(f"`{short(module, node)}` is not elementwise")


def _operation(subject: Subject, node: cst.BinaryOperation, found: Picked) -> None:
    constant = isinstance(node.right, (cst.Integer, cst.Float))
    power = isinstance(node.operator, cst.Power)
    if power and isinstance(node.right, cst.Integer) and node.right.evaluated_value > 0:
        read_elementwise(subject, node.left, found)
    elif isinstance(node.operator, _OPERATORS) or (
        isinstance(node.operator, cst.Divide) and constant
    ):
        read_elementwise(subject, node.left, found)
        read_elementwise(subject, node.right, found)
    elif power and constant and _is_pick(subject.module, node.left, found):
        found.steep = True
        read_elementwise(subject, node.left, found)
    else:
        raise Refused(f"`{short(subject.module, node)}` may be infinite outside the mask")


def _is_pick(module: SourceModule, node: cst.BaseExpression, found: Picked) -> bool:
    if isinstance(node, cst.Name):
        return node.value in found.named
    return pick_of(module, node) is not None


def _call(subject: Subject, call: cst.Call, found: Picked) -> None:
    name = operator_of(subject.module, call)
    given = [arg.value for arg in call.args]
    if not subject.module.meaning(call.func) & {f"{p}{name}" for p in operators.PREFIXES}:
        assert isinstance(call.func, cst.Attribute)
        given.insert(0, call.func.value)
    if name in _HARMLESS_AT_ONE:
        found.steep = True
        if not _is_pick(subject.module, given[0], found):
            raise Refused(f"`{short(subject.module, call)}` may be infinite outside the mask")
    for each in given:
        read_elementwise(subject, each, found)


def reduction_around(
    subject: Subject, node: cst.CSTNode
) -> tuple[cst.Call, str, cst.BaseExpression]:
    """The nearest one around the pick: its node, its name, and what it is over."""
    module = subject.module
    for above in module.ancestors(node):
        if isinstance(above, cst.BaseStatement):
            break
        name = operator_of(module, above) if isinstance(above, cst.Call) else None
        if name not in REDUCTIONS or not isinstance(above, cst.Call):
            continue
        if f"torch.{name}" in module.meaning(above.func):
            given = [arg.value for arg in above.args if arg.keyword is None and not arg.star]
            rest = above.args[1:]
        else:
            assert isinstance(above.func, cst.Attribute)
            given, rest = [above.func.value], above.args[:]
        if rest or len(given) != 1:
            raise Refused(f"`{name}` does not reduce over all elements")
        return above, name, given[0]
    raise Refused("the selected elements are not reduced in the same expression")


def count_of(subject: Subject, node: cst.CSTNode) -> cst.BaseExpression | None:
    """What asks how many were picked, around the pick: `len(x[mask])`, `x[mask].shape[0]`."""
    module = subject.module
    above = module.parent(node)
    if isinstance(above, cst.Arg):
        call = module.parent(above)
        return call if isinstance(call, cst.Call) and module.calls(call, "builtins.len") else None
    if not isinstance(above, cst.Attribute) or above.value is not node:
        return None
    outer = module.parent(above)
    if isinstance(outer, cst.Call) and outer.func is above:
        given = [module.code(arg.value) for arg in outer.args]
        if (above.attr.value, given) in (("numel", []), ("size", ["0"])):
            return outer
    if isinstance(outer, cst.Subscript) and above.attr.value == "shape":
        return outer if module.code(outer).endswith(".shape[0]") else None
    return None
