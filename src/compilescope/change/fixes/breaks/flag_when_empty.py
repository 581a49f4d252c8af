"""A flag that says whether any rows are selected, read from a tensor: set it always.

`any_global = mask.any().item()`, and `if any_global:` in each layer around work on what the mask
selects. Where nothing is selected, that work runs on nothing; only a run shows that this is the same.
"""

from __future__ import annotations

from compilescope.change.fixes.branches.branch import RULES
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.rows.empty_work import patch_for_no_rows
from compilescope.change.fixes.rows.row_flags import FlagUses, RowFlag, flag_of
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensor_sizes import TOLD, write_numbers
from compilescope.knowledge.source.flow.liveness import names_set
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import parameters_of
from compilescope.knowledge.source.syntax.edit import Edit


def _propose(subject: Subject) -> Patch:
    flag = flag_of(subject)
    subject = subject.at(subject.module, flag.assign)
    uses = FlagUses(subject, flag)
    uses.follow()
    edit = Edit(subject.module)
    edit.replace(flag.assign.value, edit.expression(_value(subject, flag, list(uses.asked_with))))
    for call, rows in uses.sized_views():
        edit.replace(call, edit.expression(f"{subject.module.code(rows)}.flatten(1)"))
    numbers, told = True, ""
    try:
        told = TOLD if write_numbers(subject, edit) else ""
    except NotMeant:  # No tensor is a size: the flag for numbers could only do harm.
        numbers = False
    return patch_for_no_rows(subject, edit, uses.written, numbers=numbers, told=told)


def _value(subject: Subject, flag: RowFlag, beside: list[str]) -> str:
    """`True`; where something beside the flag decides whether its value shows, still read then."""
    module = subject.module
    if not beside:
        return str(flag.when_rows)
    function = module.function_of(flag.assign)
    known = set() if function is None else {*parameters_of(function)}
    if function is not None:
        known |= {*names_set(module, function.body)}
    if not set(beside) <= known:
        unknown = next(each for each in beside if each not in known)
        raise Refused(f"where `{unknown}` is true, the value of the flag may show")
    shown = module.code(flag.assign.value)
    if flag.when_rows:
        any_of = beside[0] if len(beside) == 1 else f"({' or '.join(beside)})"
        return f"not {any_of} or {shown}"
    if len(beside) > 1:
        raise Refused("several names beside the flag decide whether its value shows")
    return f"{beside[0]} and {shown}"


FIX = Fix(
    id="flag-when-empty",
    title="set a flag that asks whether rows are selected, and work on none where none are",
    rules=RULES | {"dynamic-shape", "GB0124"},
    order=121,
    kind="source",
    why="What the flag guards works on the rows that are selected. Where there are none, it works on "
    "none and changes nothing: this is verified on inputs for which the flag is false. With "
    "`capture_dynamic_output_shape_ops`, Dynamo keeps the number of rows as a symbol.",
    propose=_propose,
    only_run_tells=True,
)
