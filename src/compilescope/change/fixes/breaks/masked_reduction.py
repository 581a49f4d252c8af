"""A sum over what a mask picks, taken over all, with the rest at zero."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import category, kind_of
from compilescope.change.fixes.values.masks import (
    REDUCTIONS,
    Pick,
    Picked,
    check_lasting,
    check_mask,
    count_of,
    fill_of,
    pick_of,
    read_elementwise,
    reduction_around,
    spans,
)
from compilescope.change.fixes.values.scalars import Uses
from compilescope.change.fixes.values.tensors import bare
from compilescope.knowledge.source.flow.liveness import reads
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit, replaced
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_NARROW = {"float16", "bfloat16"}


def _propose(subject: Subject) -> Patch:
    module = subject.module
    edit = Edit(module)
    node = subject.node
    if isinstance(node, cst.BaseStatement):
        raise NotMeant("it is unclear which part of the line selects elements")
    name = _name_given(subject)
    if name is None:
        _rewrite(subject, edit, node, {})
        _rewrite_beside(subject, edit, [node])
        return Patch(edit.files())
    pick = pick_of(module, node)
    if pick is None:
        raise NotMeant("no mask selects elements here")
    check_lasting(subject, name, pick)
    check_mask(subject, pick)
    named = cst.Name(module.fresh_name("mask"))
    uses = [each for each in reads(module, subject.function.body) if each.value == name]
    for each in uses:
        _rewrite(subject, edit, each, {name: pick}, named)
    made = edit.statements(f"{named.value} = {module.code(bare(pick.mask))}")
    edit.replace_statement(subject.statement, made)
    _rewrite_beside(subject, edit, uses)
    return Patch(edit.files())


def _rewrite_beside(subject: Subject, edit: Edit, done: Sequence[cst.CSTNode]) -> None:
    """What else a mask picks in the same statements: Dynamo would stop there next."""
    module = subject.module
    seen = {part for node in done for part in module.walk(node)}
    for statement in dict.fromkeys(module.statement_of(node) for node in done):
        for node in module.walk(statement):
            if node in seen or pick_of(module, node) is None:
                continue
            try:
                _rewrite(subject, edit, node, {})
            except Refused:
                continue


def _name_given(subject: Subject) -> str | None:
    """`picked = x[mask]`: the name that all is done with."""
    line, node = subject.statement, subject.node
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    only = line.body[0]
    if not isinstance(only, cst.Assign) or only.value is not node or len(only.targets) != 1:
        return None
    target = only.targets[0].target
    return target.value if isinstance(target, cst.Name) else None


def _rewrite(
    subject: Subject,
    edit: Edit,
    node: cst.CSTNode,
    named: dict[str, Pick],
    by_name: cst.Name | None = None,
) -> None:
    module = subject.module
    pick = named.get(node.value) if isinstance(node, cst.Name) else pick_of(module, node)
    counted = count_of(subject, node) if pick is not None else None
    if pick is not None and counted is not None:
        check_mask(subject, pick)
        Uses(subject).follow(counted)
        edit.replace(counted, edit.expression(_count(subject, edit, pick, by_name or pick.mask)))
        return
    reduction, name, elements = reduction_around(subject, node)
    found = Picked(named=named)
    read_elementwise(subject, elements, found)
    masks = {module.code(each.mask) for each in found.picks}
    if len(masks) != 1:
        raise Refused("the elements are not all selected by one mask")
    text = _reduced(subject, edit, name, elements, found, by_name or found.picks[0].mask)
    if (
        name == "mean"
        and not text.endswith(".dtype)")
        and not isinstance(module.parent(reduction), (cst.Assign, cst.Return, cst.Arg))
    ):
        text = f"({text})"
    edit.replace(reduction, edit.expression(text))


def _reduced(
    subject: Subject,
    edit: Edit,
    name: str,
    elements: cst.BaseExpression,
    found: Picked,
    of: cst.BaseExpression,
) -> str:
    module, torch = edit.module, edit.module_name("torch")
    mask, rest = module.code(bare(of)), REDUCTIONS[name]
    if name == "prod" and any(kind_of(subject, each.values).shape == () for each in found.picks):
        raise Refused("the derivative of the product of one number is another than that of a row")
    alone = found.picks[0].node is elements
    fill = rest if alone else fill_of(subject, found)
    filled: dict[cst.CSTNode, cst.BaseExpression] = {
        each.node: edit.expression(f"{torch}.where({mask}, {module.code(each.values)}, {fill})")
        for each in found.picks
    }
    text = module.code(bare(replaced(elements, filled)))
    if not alone:
        text = f"{torch}.where({mask}, {text}, {rest})"
    if name != "mean":
        return f"{text}.{name}()"
    return _mean(subject, edit, text, found, _count(subject, edit, found.picks[0], of))


def _mean(subject: Subject, edit: Edit, text: str, found: Picked, count: str) -> str:
    """As `mean` does: below 32 bits the sum is one of 32 bits, and only the mean is rounded."""
    dtypes = {kind_of(subject, pick.values).dtype for pick in found.picks}
    if None in dtypes:
        raise NeedsRun("only a run can show in which dtype the mean is summed")
    if any(dtype is not None and category(dtype) < 2 for dtype in dtypes):
        raise Refused("`mean` raises for whole numbers, and a sum divided by a count does not")
    if not dtypes & _NARROW:
        return f"{text}.sum() / {count}"
    values = found.picks[0].values
    if len(dtypes) > 1 or not isinstance(values, (cst.Name, cst.Attribute)):
        raise Refused("a 16-bit mean is summed in 32 bits, and a plain sum is not")
    torch = edit.module_name("torch")
    whole = f"{text}.sum(dtype={torch}.float32) / {count}"
    return f"({whole}).to({edit.module.code(bare(values))}.dtype)"


def _count(subject: Subject, edit: Edit, pick: Pick, of: cst.BaseExpression) -> str:
    """How many are picked; `of` is the mask, or the name that it got."""
    if spans(subject, pick):
        return f"{_in_brackets(edit.module, of)}.sum()"
    torch, code = edit.module_name("torch"), edit.module.code
    return f"{torch}.broadcast_tensors({code(bare(of))}, {code(bare(pick.values))})[0].sum()"


def _in_brackets(module: SourceModule, node: cst.BaseExpression) -> str:
    simple = isinstance(node, (cst.Name, cst.Attribute, cst.Call)) or bool(node.lpar)
    return module.code(node) if simple else f"({module.code(node)})"


FIX = Fix(
    id="masked-reduction",
    title="use torch.where instead of boolean indexing",
    rules=frozenset({"dynamic-shape", "GB0036"}),
    order=45,
    kind="source",
    why="Zeros do not change a sum, and ones do not change a product. `where` ignores NaN on "
    "the side it drops, forward and backward. Multiplying by the mask would not.",
    propose=_propose,
)
