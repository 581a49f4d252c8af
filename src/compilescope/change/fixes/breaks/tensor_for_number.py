"""A number that is only used in arithmetic with tensors stays a tensor."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import (
    as_tensor,
    extraction_of,
    extractions_beside,
    limit_around,
)
from compilescope.change.fixes.values.scalars import Uses
from compilescope.knowledge.source.syntax.edit import Edit


def _propose(subject: Subject) -> Patch:
    first = extraction_of(subject)
    edit = Edit(subject.module)
    for found in (first, *extractions_beside(subject, first)):
        uses = Uses(subject, tensor=found.tensor)
        text, node = as_tensor(subject, found.tensor), found.node
        limit = limit_around(subject, found)
        if limit is not None:
            node, text = limit.node, f"{text.removesuffix('.clone()')}.clamp({limit.argument})"
        uses.follow(node)
        edit.replace(node, edit.expression(text))
        if uses.is_returned and subject.function.returns is not None:
            said = edit.expression(f"{edit.module_name('torch')}.Tensor")
            edit.replace(subject.function.returns.annotation, said)
    return Patch(edit.files())


FIX = Fix(
    id="tensor-for-number",
    title="use the tensor itself instead of its number",
    rules=frozenset({"scalar-extraction", "GB0124", "GB0033"}),
    order=40,
    kind="source",
    why="In arithmetic with other tensors, a zero-dimensional tensor acts like a number, also "
    "for the result's dtype. `detach` keeps it out of the gradient, as the number was, and "
    "a copy protects it from later in-place changes. `max(t.item(), 1.0)` is `t.clamp(min=1.0)`, "
    "NaN included.",
    propose=_propose,
)
