"""Sizes that are tensors become numbers which the graph holds; conditions are read outside of it.

`most = counts.max()` as a size breaks the graph with and without flags, and the flag that lets a
graph hold numbers makes worse of a condition that is read from a tensor: only together do they help.
"""

from __future__ import annotations

import msgspec

from compilescope.change.fixes.compilation.settings import with_flags
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.custom_operator import outline_outside
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import check_no_decision, is_of_symbol, read_from
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.change.fixes.values.tensor_sizes import TOLD, break_sites, write_numbers
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.purity import operator_of
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_FLAGS = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
_STAYS = "The graph still breaks where a condition is read from a tensor: `{0}` runs in eager mode."


def _propose(subject: Subject) -> Patch:
    if is_of_symbol(subject):
        raise Refused("the number is already a symbol in the graph, and this line needs its value")
    edit = Edit(subject.module)
    told = write_numbers(subject, edit)
    conditions = _conditions(subject)
    if subject.node in conditions:
        raise NotMeant("a condition needs its value in Python")
    outside = [_kept_outside(edit, each) for each in conditions]
    states = TOLD if told else ""
    if outside:
        states += " " + _STAYS.format("`, `".join(dict.fromkeys(outside)))
    try:
        patch = with_flags(subject, _FLAGS, edit=edit, states=states.strip())
    except NotMeant:  # Both are set.
        patch = Patch(edit.files(), states=states.strip())
    return msgspec.structs.replace(patch, keeps_break=bool(outside))


def _conditions(subject: Subject) -> list[cst.Call]:
    """The reads in the file that a branch hangs on, or that give a bool: no symbol can stand for
    these."""
    found: dict[cst.Call, None] = {}
    for there in break_sites(subject):
        try:
            node = there.node
        except Refused:
            continue
        if not isinstance(node, cst.Call) or read_from(there.module, node) is None:
            continue
        if _gives_bool(there, node) or _decides(there):
            found[node] = None
    return list(found)


def _gives_bool(subject: Subject, read: cst.Call) -> bool:
    tensor = read_from(subject.module, read)
    if tensor is None:
        return False
    name = operator_of(subject.module, tensor) if isinstance(tensor, cst.Call) else None
    return name in operators.TRUTHS or kind_of(subject, tensor).dtype == "bool"


def _decides(subject: Subject) -> bool:
    try:
        check_no_decision(subject)
    except Refused:
        return True
    return False


def _kept_outside(edit: Edit, read: cst.Call) -> str:
    outline_outside(edit, read, "read")
    return edit.module.code(read)


FIX = Fix(
    id="number-for-size",
    title="read sizes with .item(), and conditions outside of the graph",
    rules=frozenset({"scalar-extraction", "dynamic-shape", "GB0036", "GB0124", "GB6622"}),
    order=126,
    kind="source",
    why="A tensor as a size is read when the operator runs, so its number is the same a line "
    "earlier. With `capture_scalar_outputs` the number is one symbol of the graph, where each use of "
    "the tensor would get a symbol of its own. Conditions need their value in Python, so these are "
    "read in a function under `torch.compiler.disable`, which breaks the graph as the read did.",
    propose=_propose,
)
