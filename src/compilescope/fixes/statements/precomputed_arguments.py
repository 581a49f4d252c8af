"""Values that are made before the compiled part of a function, and handed to it as arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compilescope.fixes.compilation.frames import own_statement
from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.shell import Shell
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.constants import check_early
from compilescope.fixes.values.extraction import read_from
from compilescope.source.flow.cuts import Split, split_around
from compilescope.source.flow.purity import operator_of
from compilescope.source.refusals import NotMeant
from compilescope.source.syntax.bindings import bound_names, parameters_of, statements_of
from compilescope.source.syntax.edit import Edit
from compilescope.source.syntax.snippets import number
from compilescope.source.trees import cst

DRAWS = ("random.random", "numpy.random.rand", "numpy.random.random")
"""Without arguments, each gives one Python number."""


def passed_as_arguments(
    subject: Subject,
    values: Mapping[str, cst.BaseExpression],
    outside: Sequence[cst.BaseStatement] = (),
    steps: Sequence[cst.BaseStatement] = (),
) -> Patch:
    """The function stays, and makes these values, by the names that they get; all else becomes a
    core that is compiled alone. `steps`: statements that the values need. Raises `Refused` where
    one cannot be made as early as that."""
    module, function = subject.module, subject.function
    body = statements_of(function)
    moved: list[cst.BaseStatement] = list(steps)
    lifted: dict[str, cst.BaseExpression] = {}
    statements: list[cst.BaseStatement] = []
    for name, value in values.items():
        statement = own_statement(subject, value)
        if statement is None:
            raise NotMeant("the line is not a statement in the function's own body")
        before = [each for each in body[: body.index(statement)] if each not in steps]
        check_early(subject, value, before)
        statements.append(statement)
        if _is_all_of(subject, statement, value):
            moved.append(statement)
        else:
            lifted[name] = value
    split = split_around(module, [each for each in body if each not in moved], outside)
    if any(each in split.after or each in split.before for each in statements):
        raise NotMeant("the value is not part of the compiled work")
    edit = Edit(module)
    before = [*split.before, *sorted(moved, key=body.index)]
    tests = (
        key
        for key, value in lifted.items()
        if is_test(subject, value) and not _is_python_bool(subject, value)
    )
    whole = Split(
        before,
        split.core,
        split.after,
        None,
        split.outer_before,
        lifted=lifted,
        truths=frozenset(tests),
    )
    Shell(edit, function, whole).write()
    return Patch(edit.files())


def is_test(subject: Subject, value: cst.CSTNode) -> bool:
    """Is it all of the condition of an `if`, or of a conditional expression?"""
    above = subject.module.parent(value)
    return isinstance(above, (cst.If, cst.IfExp)) and above.test is value


def _is_python_bool(subject: Subject, value: cst.BaseExpression) -> bool:
    """`torch.allclose(a, b)`, `not t`, `t.item() > 1`: what Python has read already."""
    module = subject.module
    if isinstance(value, cst.UnaryOperation):
        return isinstance(value.operator, cst.Not)
    if isinstance(value, cst.BooleanOperation):
        return _is_python_bool(subject, value.left) and _is_python_bool(subject, value.right)
    if isinstance(value, cst.Comparison):
        sides = [value.left, *(each.comparator for each in value.comparisons)]
        return all(
            number(side) is not None
            or (isinstance(side, cst.Call) and read_from(module, side))
            or module.calls(side, *DRAWS)
            for side in sides
        )
    if not isinstance(value, cst.Call):
        return False
    asked = operator_of(module, value) in ("allclose", "equal")
    return asked or module.calls(value, "builtins.bool")


def _is_all_of(subject: Subject, statement: cst.BaseStatement, value: cst.BaseExpression) -> bool:
    """`name = value`, and the name is bound nowhere else: the statement moves as it is."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    only = statement.body[0]
    if not isinstance(only, cst.Assign) or only.value is not value or len(only.targets) != 1:
        return False
    rest = [each for each in subject.function.body.body if each is not statement]
    names = bound_names([statement])
    return isinstance(only.targets[0].target, cst.Name) and not names & (
        bound_names(rest) | set(parameters_of(subject.function))
    )
