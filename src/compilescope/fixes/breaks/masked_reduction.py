"""A sum over what a mask picks, taken over all, with the rest at zero."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.masks import (
    REDUCTIONS,
    Pick,
    Picked,
    check_lasting,
    check_mask,
    count_of,
    pick_of,
    read_elementwise,
    reduction_around,
)
from compilescope.fixes.values.scalars import Uses
from compilescope.fixes.values.tensors import bare, facts_of
from compilescope.source.flow.liveness import reads
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.edit import Edit, replaced
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst


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
        text = _in_brackets(module, by_name or pick.mask)
        edit.replace(counted, edit.expression(f"{text}.sum()"))
        return
    reduction, name, elements = reduction_around(subject, node)
    found = Picked(named=named)
    read_elementwise(subject, elements, found)
    masks = {module.code(each.mask) for each in found.picks}
    if len(masks) != 1:
        raise Refused("the elements are not all selected by one mask")
    if name == "mean" and _is_narrow(subject, found):
        raise Refused("a 16-bit mean is summed in 32 bits, and a plain sum is not")
    mask = by_name or found.picks[0].mask
    text = _reduced(edit, name, elements, found, mask)
    if name == "mean" and not isinstance(
        module.parent(reduction), (cst.Assign, cst.Return, cst.Arg)
    ):
        text = f"({text})"
    edit.replace(reduction, edit.expression(text))


def _reduced(
    edit: Edit,
    name: str,
    elements: cst.BaseExpression,
    found: Picked,
    of: cst.BaseExpression,
) -> str:
    module, torch = edit.module, edit.module_name("torch")
    mask, rest = module.code(bare(of)), REDUCTIONS[name]
    alone = found.picks[0].node is elements
    fill = rest if alone else "1" if found.steep else "0"
    filled: dict[cst.CSTNode, cst.BaseExpression] = {
        each.node: edit.expression(f"{torch}.where({mask}, {module.code(each.values)}, {fill})")
        for each in found.picks
    }
    text = module.code(bare(replaced(elements, filled)))
    if not alone:
        text = f"{torch}.where({mask}, {text}, {rest})"
    if name != "mean":
        return f"{text}.{name}()"
    return f"{text}.sum() / {_in_brackets(module, of)}.sum()"


def _is_narrow(subject: Subject, found: Picked) -> bool:
    kinds = {fact.dtype for pick in found.picks for fact in facts_of(subject, pick.values)}
    return bool(kinds & {"float16", "bfloat16"})


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
