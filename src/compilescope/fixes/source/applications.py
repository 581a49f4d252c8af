"""The functions given to `torch.compile` in which the compilations of a finding began."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Subject
from compilescope.model.stack import Frame

_COMPILES = ("torch.compile", "torch._dynamo.optimize")


@dataclass(frozen=True)
class Application:
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
    wanted = set(subject.finding.because)
    stacks = [event.stack for event in subject.program.run.events if event.id in wanted]
    found: list[Application] = []
    modules: dict[str, list[Application]] = {}
    for stack in stacks:
        for frame in stack:
            if frame.file not in modules:
                modules[frame.file] = _applications(subject, frame.file)
        known = [each for some in modules.values() for each in some]
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
    return list(_in_module(module))


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
