"""A size that varies is marked so before the call, so that the first graph fits all sizes."""

from __future__ import annotations

from compilescope.change.fixes.arguments.edits import dynamic_line, mark_arguments
from compilescope.change.fixes.arguments.guarded import (
    check_no_parameter,
    numbers_seen,
    other_sizes,
    size_of,
    sizes_with,
)
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import Refused

_SPECIAL = frozenset({0, 1})
_MANY = 3
"""Other sizes. Chosen: for so many it is a gain that 0 or 1 has a graph of its own."""


def _propose(subject: Subject) -> Patch:
    _, dim = size_of(subject)
    check_no_parameter(subject)
    numbers = numbers_seen(subject)
    if numbers & _SPECIAL and len(numbers - _SPECIAL) < _MANY:
        raise Refused("sizes 0 and 1 are compiled separately, marked or not")
    marks = [(each, dynamic_line(dim)) for each in sizes_with(subject, dim)]
    # Height and width of an image: the one would be a constant of each graph for the other.
    marks += [
        (tensor, dynamic_line(other))
        for tensor, other, seen in other_sizes(subject)
        if not seen & _SPECIAL
    ]
    return Patch(mark_arguments(subject, marks))


FIX = Fix(
    id="mark-dynamic",
    title="mark the size as dynamic",
    rules=frozenset({"recompile/size-change", "recompile/equal-sizes"}),
    order=60,
    kind="source",
    why="`maybe_mark_dynamic` only tells Dynamo that one size of one tensor may vary. Unlike "
    "`mark_dynamic`, it never raises if the code needs the number after all.",
    propose=_propose,
)
