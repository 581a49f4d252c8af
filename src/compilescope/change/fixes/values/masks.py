"""Elements picked by a mask and then reduced: reduced over all, with the others set to be neutral.

`x[mask].sum()` is `torch.where(mask, x, 0).sum()`, also where `x` is NaN outside of the mask, and
in the gradient. What is computed between the mask and the reduction is computed on a harmless
value there, and set to the neutral one again afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import ValueFact
from compilescope.change.fixes.values.kinds import kind_of, known_shape
from compilescope.change.fixes.values.tensors import bare, facts_of, is_static
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.aliasing import changes_in_place
from compilescope.knowledge.source.flow.liveness import targets
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

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
    is_index: bool = False
    """By `[mask]`, which does not broadcast."""


@dataclass
class Picked:
    """The elementwise expression that a reduction is over, and what it picks."""

    picks: list[Pick] = field(default_factory=list)
    steep: bool = False
    inverted: bool = False
    """By `~`, which is another thing for a bool than for a number."""
    named: dict[str, Pick] = field(default_factory=dict)
    """What names stand for, where it was picked before."""


def pick_of(module: SourceModule, node: cst.CSTNode) -> Pick | None:
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        if isinstance(index, cst.Index) and index.star is None:
            return Pick(node, node.value, index.value, is_index=True)
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
    """Is the mask one truth for every element? That of `masked_select` is: it broadcasts, as
    `torch.where` does."""
    module = subject.module
    masks, values = facts_of(subject, pick.mask), facts_of(subject, pick.values)
    if any(fact.dtype != "bool" for fact in masks if fact.kind == "tensor"):
        raise Refused(f"`{short(module, pick.mask)}` is not a bool mask")
    if not pick.is_index or is_elementwise_of(subject, pick.mask, pick.values):
        return
    paired = _together(subject, pick)
    if paired:
        if all(mask == shape for mask, shape in paired):
            return
        raise Refused("the mask selects whole rows, not single elements")
    if masks and values:
        ranks = _ranks(masks), _ranks(values)
        if ranks[0] == ranks[1] and len(ranks[0]) == 1 and None not in ranks[0]:
            return  # As an index, a mask of as many dimensions has the same sizes.
        if not ranks[0] & ranks[1]:
            raise Refused("the mask selects whole rows, not single elements")
    raise Refused(f"it is unknown whether `{short(module, pick.mask)}` has one bool per element")


def _together(subject: Subject, pick: Pick) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The shapes of the mask and of the values, visit by visit."""
    module = subject.module
    if not isinstance(pick.mask, _NAMES) or not isinstance(pick.values, _NAMES):
        return set()
    names = (module.code(bare(each)) for each in (pick.mask, pick.values))
    return subject.program.facts.together(subject.file, subject.line, *names)


def spans(subject: Subject, pick: Pick) -> bool:
    """Has the mask itself an element for every one of the values? An index has; that of
    `masked_select` may have one for a whole row."""
    if pick.is_index or is_elementwise_of(subject, pick.mask, pick.values):
        return True
    paired = _together(subject, pick)
    if paired:
        return all(mask == shape for mask, shape in paired)
    masks, values = facts_of(subject, pick.mask), facts_of(subject, pick.values)
    shapes = {known_shape(fact) for fact in (*masks, *values)}
    return bool(masks and values) and len(shapes) == 1 and None not in shapes


def _ranks(facts: Sequence[ValueFact]) -> set[int | None]:
    return {None if fact.shape is None else len(fact.shape) for fact in facts}


def is_elementwise_of(
    subject: Subject, mask: cst.BaseExpression, values: cst.BaseExpression
) -> bool:
    """`x > 0`, `~torch.isnan(x)`, `(x > 0) & (x < 1)`: a truth of every element of `x`, or of
    something that was only ever seen with the one size that `x` has."""
    if isinstance(mask, cst.Comparison):
        sides = [mask.left, *(each.comparator for each in mask.comparisons)]
        return any(_is_sized_as(subject, side, values) for side in sides)
    if isinstance(mask, cst.UnaryOperation):
        return is_elementwise_of(subject, mask.expression, values)
    if isinstance(mask, cst.BinaryOperation):
        sides = [mask.left, mask.right]
        return any(is_elementwise_of(subject, side, values) for side in sides)
    truths = operators.TRUTHS - {"any", "all"}
    if isinstance(mask, cst.Call) and operator_of(subject.module, mask) in truths:
        given = [arg.value for arg in mask.args[:1]]
        if isinstance(mask.func, cst.Attribute):
            given.append(mask.func.value)
        return any(_is_sized_as(subject, each, values) for each in given)
    return isinstance(mask, _NAMES) and _is_sized_as(subject, mask, values)


def _is_sized_as(subject: Subject, node: cst.BaseExpression, values: cst.BaseExpression) -> bool:
    code = subject.module.code
    if code(bare(node)) == code(bare(values)):
        return True
    mine, theirs = (
        {known_shape(fact) for fact in facts_of(subject, each)} for each in (node, values)
    )
    return len(mine) == 1 and mine == theirs and None not in mine


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


def read_elementwise(subject: Subject, node: cst.BaseExpression, found: Picked) -> None:
    """Gather what an expression picks; raises `Refused` where it is not computed one by one."""
    module = subject.module
    known = found.named.get(node.value) if isinstance(node, cst.Name) else None
    pick = replace(known, node=node) if known is not None else pick_of(module, node)
    if pick is not None and not is_static(subject, pick.values):
        check_mask(subject, pick)
        found.picks.append(pick)
    elif is_static(subject, node) or isinstance(node, (cst.Integer, cst.Float)):
        return
    elif isinstance(node, cst.UnaryOperation) and isinstance(
        node.operator, (cst.Minus, cst.BitInvert)
    ):
        found.inverted |= isinstance(node.operator, cst.BitInvert)
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


def fill_of(subject: Subject, found: Picked, *, divided: bool = False) -> str:
    """What the elements that are out are while something is computed of all: no dtype may change
    by it, nor a gradient become infinite."""
    one = found.steep or divided
    dtypes = {kind_of(subject, pick.values).dtype for pick in found.picks}
    if "bool" in dtypes or (found.inverted and None in dtypes):
        return str(one)
    return str(int(one))


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
