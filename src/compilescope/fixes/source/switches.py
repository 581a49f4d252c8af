"""Flags that decide whether a line runs: `if self.config.use_cache:`, `if output_attentions:`.

They are sought from the line outwards, along the calls that led to it, in whosever code it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import GraphBreak

_DEEPEST = 12


@dataclass(frozen=True)
class Switch:
    """A flag, and the value with which the line is not reached."""

    name: str
    value: bool
    of_config: bool
    """A field of a config object; else a parameter of the function."""
    file: str


def stack_places(subject: Subject) -> list[tuple[str, int]]:
    """(file, line) on the stacks of the break, innermost first."""
    found = [(subject.file, subject.line)]
    wanted = set(subject.finding.because)
    for event, _ in subject.program.run.of(GraphBreak):
        if event.id in wanted:
            stack = [each for each in event.stack if each.origin in ("user", "library")]
            found += [(each.file, each.line) for each in reversed(stack[-_DEEPEST:])]
    return list(dict.fromkeys(found))


def switches_of(subject: Subject) -> Iterator[Switch]:
    """The nearest first."""
    for file, line in stack_places(subject):
        try:
            module = subject.program.module(file)
        except Refused:
            continue
        statement = module.statement_at(line)
        if statement is not None:
            yield from _around(module, statement)


def _around(module: SourceModule, statement: cst.BaseStatement) -> Iterator[Switch]:
    current: cst.CSTNode = statement
    function = module.function_of(statement)
    if isinstance(statement, cst.If):
        # The test itself is what breaks: what stands before it in an `and` may keep it away.
        yield from _keeping(module, function, statement.test, False)
    for above in module.ancestors(statement):
        if isinstance(above, cst.If):
            yield from _keeping(module, function, above.test, above.body is not current)
        elif isinstance(above, cst.IndentedBlock):
            for earlier in above.body:
                if earlier is current:
                    break
                if isinstance(earlier, cst.If) and leaves(earlier):
                    yield from _keeping(module, function, earlier.test, True)
        elif isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return
        current = above


def leaves(test: cst.If) -> bool:
    """Its body ends with `return`."""
    body = test.body.body
    last = body[-1] if body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Return)


def _keeping(
    module: SourceModule, function: cst.FunctionDef | None, test: cst.BaseExpression, wanted: bool
) -> Iterator[Switch]:
    """Flags one of which makes the test as wanted, whatever else it asks."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _keeping(module, function, test.expression, not wanted)
    elif isinstance(test, cst.BooleanOperation):
        # One false part is enough for a false `and`, one true part for a true `or`.
        if isinstance(test.operator, cst.Or) == wanted:
            yield from _keeping(module, function, test.left, wanted)
            yield from _keeping(module, function, test.right, wanted)
    elif isinstance(test, cst.Attribute):
        owner = module.code(test.value)
        if owner.split(".")[-1].endswith("config"):
            yield Switch(test.attr.value, wanted, True, module.path)
    elif isinstance(test, cst.Name) and function is not None and _is_flag(function, test.value):
        yield Switch(test.value, wanted, False, module.path)


def _is_flag(function: cst.FunctionDef, name: str) -> bool:
    """A parameter whose default is True, False or None."""
    params = function.params
    for each in (*params.posonly_params, *params.params, *params.kwonly_params):
        if each.name.value == name:
            default = each.default
            return isinstance(default, cst.Name) and default.value in ("True", "False", "None")
    return False
