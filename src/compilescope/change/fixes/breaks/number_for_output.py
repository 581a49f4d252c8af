"""A number read from a tensor only to be printed: passed as a tensor, and read by the output."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.custom_operator import outline
from compilescope.change.fixes.statements.outputs import is_told_once, moved_note, output_of
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import (
    Extraction,
    as_tensor,
    extraction_at,
    extraction_of,
)
from compilescope.change.fixes.values.scalars import Uses
from compilescope.knowledge.source.flow.liveness import reads, targets
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    module = subject.module
    first = extraction_of(subject)
    above = module.parent(first.node)
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    if not isinstance(target, cst.Name):
        raise NotMeant("no name for the number is printed")
    numbers = {target.value: first}
    calls: dict[cst.Call, None] = {}
    left: list[cst.CSTNode] = []
    for read in reads(module, subject.function.body):
        # A line that prints several numbers takes all of them as tensors.
        call = _output_around(subject, read)
        if call is not None and (found := _number(subject, read.value, numbers)) is not None:
            numbers[read.value] = found
            calls[call] = None
            left.append(read)
    if not any(each.value == target.value for each in left if isinstance(each, cst.Name)):
        raise NotMeant(f"`{target.value}` is not printed")
    edit = Edit(module)
    for found in numbers.values():
        Uses(subject, left).follow(found.node)
        edit.replace(found.node, edit.expression(as_tensor(subject, found.tensor)))
    kinds = {call: output_of(module, call) or "log" for call in calls}
    for call, kind in kinds.items():
        verb = "show" if kind == "progress" else kind
        outline(subject, edit, call, verb, frozenset(numbers))
    return Patch(edit.files(), states=moved_note(kinds.values()))


def _number(subject: Subject, name: str, known: dict[str, Extraction]) -> Extraction | None:
    """What a name is read from, where the function gives it a number once."""
    if name in known:
        return known[name]
    given = [
        each
        for each in subject.module.walk(subject.function.body)
        if isinstance(each, cst.Assign)
        and any(isinstance(t, cst.Name) and t.value == name for t in targets(each))
    ]
    if len(given) != 1 or not isinstance(given[0].value, cst.Call):
        return None
    try:
        return extraction_at(subject, given[0].value)
    except Refused:
        return None


def _output_around(subject: Subject, node: cst.CSTNode) -> cst.Call | None:
    module = subject.module
    for above in module.ancestors(node):
        if isinstance(above, cst.BaseStatement):
            return None
        kind = output_of(module, above)
        if kind is None or not isinstance(above, cst.Call):
            continue
        if kind == "warn" or is_told_once(above) or not isinstance(module.parent(above), cst.Expr):
            return None
        return above
    return None


FIX = Fix(
    id="number-for-output",
    title="read the number where it is printed",
    rules=frozenset({"scalar-extraction", "GB0124", "GB0033"}),
    order=58,
    kind="source",
    why="The output is an operator in the graph, which reads the number when it runs. All "
    "other uses are tensor arithmetic, where the tensor itself works.",
    propose=_propose,
)
