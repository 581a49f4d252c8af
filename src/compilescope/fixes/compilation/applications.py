"""The functions given to `torch.compile` in which the compilations of a finding began.

And whether a line is part of what is compiled: Dynamo forbids there what only a caller may do.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.fixes.compilation.run_index import index_of
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.graph_values import graph_values
from compilescope.model.stack import Frame
from compilescope.source.refusals import Refused
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst

_APPLICATIONS = "applications"
_COMPILES = ("torch.compile", "torch._dynamo.optimize")


class Application(msgspec.Struct, frozen=True):
    """A function given to `torch.compile`."""

    module: SourceModule
    node: cst.Decorator | cst.Call
    name: str
    """The function's; empty for a lambda."""
    target: cst.CSTNode | None
    """Its definition, where that is in the same file."""

    def covers(self, frame: Frame) -> bool:
        if self.target is None:
            return frame.function == self.name
        place = self.module.position(self.target)
        return frame.file == self.module.path and place.start.line <= frame.line <= place.end.line


def applications_behind(subject: Subject) -> list[Application]:
    """The functions that all of the finding's compilations began in; empty where one did not."""
    events = subject.program.run.events_with(subject.finding.because)
    stacks = list(dict.fromkeys(event.stack for event in events))
    subject.program.check_callers(frame.file for stack in stacks for frame in stack)
    found: list[Application] = []
    modules: dict[str, list[Application]] = {}
    known: list[Application] = []
    for stack in stacks:
        for frame in stack:
            if frame.file not in modules:
                modules[frame.file] = _applications(subject, frame.file)
                known += modules[frame.file]
        # Outermost first: a compiled function called by another one is traced as part of it.
        begun = next(
            (hits for frame in stack if (hits := [a for a in known if a.covers(frame)])), None
        )
        if begun is None:
            return []
        found += [each for each in begun if each not in found]
    return found


def _applications(subject: Subject, file: str) -> list[Application]:
    if not subject.program.is_own(file):
        return []
    try:
        module = subject.program.module(file)
    except Refused:
        return []
    if _APPLICATIONS not in module.kept:
        module.kept[_APPLICATIONS] = list(_in_module(module))
    return module.kept[_APPLICATIONS]


def _in_module(module: SourceModule) -> Iterator[Application]:
    for node in module.walk():
        if isinstance(node, cst.FunctionDef) and node.asynchronous is None:
            for decorator in node.decorators:
                if is_compile(module, decorator.decorator):
                    yield Application(module, decorator, node.name.value, node)
        elif isinstance(node, cst.Call) and module.calls(node, *_COMPILES):
            given = _given(node)
            if given is not None:
                yield from _of_callable(module, node, given)


def is_compile(module: SourceModule, decorator: cst.BaseExpression) -> bool:
    """`@torch.compile`, `@torch.compile(...)`, `@partial(torch.compile, ...)`."""
    if isinstance(decorator, cst.Call):
        if module.calls(decorator, "functools.partial") and decorator.args:
            return is_compile(module, decorator.args[0].value)
        return module.calls(decorator, *_COMPILES)
    return bool(module.meaning(decorator) & set(_COMPILES))


def _given(call: cst.Call) -> cst.BaseExpression | None:
    """What a call of `torch.compile` is to compile."""
    for position, arg in enumerate(call.args):
        if arg.star:
            return None
        if (arg.keyword is None and position == 0) or (
            arg.keyword is not None and arg.keyword.value == "model"
        ):
            return arg.value
    return None


def _of_callable(
    module: SourceModule, call: cst.Call, given: cst.BaseExpression
) -> Iterator[Application]:
    """None where it may be a module: the wrapper would hide its attributes."""
    if isinstance(given, cst.Call) and module.calls(given, "functools.partial") and given.args:
        given = given.args[0].value
    if isinstance(given, cst.Lambda):
        yield Application(module, call, "", given)
    elif isinstance(given, cst.Name):
        yield from _of_name(module, call, given)
    elif isinstance(given, cst.Attribute):
        # A bound method; a module kept in an attribute has no frame of that name.
        yield Application(module, call, given.attr.value, None)


def _of_name(module: SourceModule, call: cst.Call, given: cst.Name) -> Iterator[Application]:
    scope = module.scope(given)
    bound = [getattr(each, "node", None) for each in scope[given.value]] if scope else []
    if bound and all(isinstance(node, cst.FunctionDef) for node in bound):
        for node in bound:
            yield Application(module, call, given.value, node)
    elif bound and all(isinstance(node, (cst.Import, cst.ImportFrom)) for node in bound):
        for meaning in module.meaning(given):
            yield Application(module, call, meaning.rsplit(".", 1)[-1], None)


def is_compiled(subject: Subject, module: SourceModule, node: cst.CSTNode) -> bool:
    """The function around it is given to torch.compile, or the run has traced it."""
    function = module.function_of(node)
    if function is None:
        return False
    if any(is_compile(module, each.decorator) for each in function.decorators):
        return True
    return any(
        file == module.path and name == function.name.value and _is_own_line(module, function, line)
        for file, line, name in _traced(subject)
    )


def _traced(subject: Subject) -> Iterator[tuple[str, int, str]]:
    run = subject.program.run
    yield from index_of(run).traced
    yield from ((file, line, name) for file, name, line in graph_values(run).traced)


def _is_own_line(module: SourceModule, function: cst.FunctionDef, line: int) -> bool:
    """Of the function itself, not of one within; its head and its decorators are its own too."""
    first = min([module.line(function), *map(module.line, function.decorators)])
    if first <= line <= module.line(function.name):
        return True
    statement = module.statement_at(line)
    return statement is not None and module.function_of(statement) is function
