"""Which size an expression must have, by what is done with it: it is given to an operator that
raises for any other one. So that is its size in every call that returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.syntax.bindings import bound_names
from compilescope.knowledge.source.trees import cst, kinds

_SOMETIMES = kinds(
    lambda: (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp, cst.NamedExpr)
)
_MOST_STEPS = 8
"""From name to name. Chosen: no function that people read has more."""


class Size(NamedTuple):
    """A size of something that the program has."""

    of: cst.BaseExpression
    which: str
    """`.shape[0]`, `.in_features`."""


Asked: TypeAlias = "Callable[[Subject, cst.BaseExpression], Iterator[Size]]"
Through: TypeAlias = "Callable[[Subject, cst.BaseExpression], cst.BaseExpression]"


def find_sizes(
    subject: Subject, node: cst.BaseExpression, asked: Asked, through: Through
) -> Iterator[Size]:
    """By each use that is surely come to, of what has a value when `node` is evaluated. `asked`:
    what the operator that it is given to asks for. `through`: the expression around it that is as
    large."""
    yield from _asked_of(subject, node, asked, through, subject.statement, _MOST_STEPS)


def _asked_of(
    subject: Subject,
    node: cst.BaseExpression,
    asked: Asked,
    through: Through,
    start: cst.BaseStatement,
    left: int,
) -> Iterator[Size]:
    module = subject.module
    whole = through(subject, node)
    here = module.statement_of(whole)
    body = list(module.block_of(start).body)
    if here not in body:
        return
    steps = body[body.index(start) : body.index(here)]
    if any(isinstance(each, cst.Return) for step in steps for each in module.walk(step)):
        return
    between = bound_names(steps)
    if not is_conditional(subject, whole):
        for size in asked(subject, whole):
            if not module.names_in(size.of) & between:
                yield size
    above = module.parent(whole)
    name = above.targets[0].target if isinstance(above, cst.Assign) else None
    if (
        not left
        or not isinstance(name, cst.Name)
        or liveness.only_value(module, subject.function, name.value) is not whole
    ):
        return
    for read in liveness.reads(module, subject.function.body):
        if read.value == name.value and not is_conditional(subject, read):
            yield from _asked_of(subject, read, asked, through, start, left - 1)


def is_conditional(subject: Subject, node: cst.CSTNode) -> bool:
    """Within its statement it may not be evaluated at all."""
    for above in subject.module.ancestors(node):
        if isinstance(above, cst.BaseStatement):
            return not isinstance(above, cst.SimpleStatementLine)
        if isinstance(above, _SOMETIMES):
            return True
    return True
