"""Where the user applies torch.compile: to what, by which names the result is called, and which of
these places the compilations of a finding began at.

A decorator, a call whose result is bound or called at once, `Module.compile()`; under any name
that the file gives to `torch` or to `torch.compile`.

Whether a line is part of what is compiled is told too: Dynamo forbids there what only a caller may
do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from compilescope.base.patterns import late
from compilescope.change.fixes.arguments.calls import callees_of
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.compilation.run_index import index_of
from compilescope.change.fixes.subject import Program, Subject
from compilescope.change.fixes.values.graph_values import graph_values
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.stack import CodeRef, Frame

Form = Literal["decorator", "call", "method"]
_REGIONS = "regions"
_SPELLED = r"(?<!\bre\.)\bcompile\b|\b_dynamo\b"
"""Without it a file applies nothing."""
_IS_SPELLED = late(_SPELLED)
_COMPILE = ("torch.compile", "torch.compiler.compile", "torch._dynamo.optimize")
_UNBOUND = "torch.nn.Module.compile"
"""With the module as its first argument."""


class Region(msgspec.Struct, frozen=True):
    """One application of torch.compile."""

    module: SourceModule
    form: Form
    node: cst.CSTNode
    """The call; the decorator's name where it stands bare, `@torch.compile`."""
    target: cst.CSTNode | None
    """The decorated function, or the expression that is compiled."""
    names: frozenset[str]
    """How the compiled thing is called in its file: `step`, `self.net`."""

    @property
    def call(self) -> cst.Call | None:
        return self.node if isinstance(self.node, cst.Call) else None

    def argument(self, name: str) -> cst.Arg | None:
        """One of torch.compile's own, as it is written."""
        for each in self.call.args if self.call else ():
            if each.keyword is not None and each.keyword.value == name:
                return each
        return None

    @property
    def arguments(self) -> str:
        """Those of torch.compile itself, for `model.compile()`."""
        given = [arg for arg in (self.call.args if self.call else ()) if arg.keyword is not None]
        own = [arg for arg in given if arg.keyword and arg.keyword.value != "model"]
        return ", ".join(self.module.code(arg).strip().rstrip(",").rstrip() for arg in own)

    @property
    def assigned(self) -> str | None:
        """The one name or attribute that a statement gives the result; None where it does more."""
        line = self.module.parent(self.node)
        if isinstance(line, cst.Assign) and len(line.targets) == 1 and line.value is self.node:
            target = line.targets[0].target
            if isinstance(target, (cst.Name, cst.Attribute)):
                return self.module.code(target)
        return None

    @property
    def takes_a_bundle(self) -> bool:
        """`torch.compile(f, **options)`: what is set cannot be seen."""
        return any(each.star for each in (self.call.args if self.call else ()))

    @property
    def is_of_many(self) -> bool:
        """It stands in a loop or in a class, so it is likely applied to several objects."""
        return self._is_in(cst.For, cst.While, cst.BaseComp, cst.ClassDef)

    def covers(self, code: CodeRef) -> bool:
        """Does the decorated function have this one in it?"""
        if self.module.path != code.file or self.target is None:
            return False
        place = self.module.position(self.target)
        first = min(self.module.line(each) for each in self.target.decorators)  # type: ignore[attr-defined]
        return first <= code.line <= place.end.line

    def _is_in(self, *kinds: Any) -> bool:
        around = self.module.ancestors(self.node)
        return any(isinstance(above, kinds) and above is not self.target for above in around)


def own_regions(program: Program) -> list[Region]:
    """In all of the user's own files."""
    return [each for module in own_modules(program, _SPELLED) for each in regions_of(module)]


def regions_of(module: SourceModule) -> list[Region]:
    """In source order, sought once."""
    known = module.kept.get(_REGIONS)
    if known is None:
        known = module.kept[_REGIONS] = _regions(module)
    return list(known)


def _regions(module: SourceModule) -> list[Region]:
    found: list[Region] = []
    if not _IS_SPELLED.search(module.text):
        return found
    for node in module.walk():
        if isinstance(node, cst.FunctionDef):
            found.extend(_decorators(module, node))
        elif isinstance(node, cst.Call):
            found.extend(_calls(module, node))
    return found


def _decorators(module: SourceModule, function: cst.FunctionDef) -> Iterator[Region]:
    for decorator in function.decorators:
        node = decorator.decorator
        named = node.func if isinstance(node, cst.Call) else node
        names = frozenset({function.name.value, f"self.{function.name.value}"})
        partial = isinstance(node, cst.Call) and _is_partial(module, node)
        if partial or module.means(named, *_COMPILE):
            yield Region(module, "decorator", node, function, names)


def _calls(module: SourceModule, node: cst.Call) -> Iterator[Region]:
    if isinstance(module.parent(node), cst.Decorator):
        return
    if _is_partial(module, node):
        yield Region(module, "call", node, None, _bound_to(module, node))
    elif not isinstance(node.func, cst.Call) and module.calls(node, *_COMPILE):
        given = [each for each in node.args if each.keyword is None and not each.star]
        named = [each for each in node.args if each.keyword and each.keyword.value == "model"]
        first = (given + named)[:1]
        yield Region(
            module, "call", node, first[0].value if first else None, _bound_to(module, node)
        )
    elif module.calls(node, _UNBOUND) and node.args and node.args[0].keyword is None:
        owner = node.args[0].value
        yield Region(module, "method", node, owner, frozenset({module.code(owner)}))
    elif _is_method(module, node):
        owner = node.func.value  # type: ignore[attr-defined]
        yield Region(module, "method", node, owner, frozenset({module.code(owner)}))


def _is_partial(module: SourceModule, node: cst.Call) -> bool:
    """`functools.partial(torch.compile, ...)`."""
    if not module.calls(node, "functools.partial") or not node.args:
        return False
    return module.means(node.args[0].value, *_COMPILE)


def _is_method(module: SourceModule, node: cst.Call) -> bool:
    """`model.compile()` as a statement of its own, or for all of a list; not `re.compile(...)`,
    whose result counts."""
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "compile":
        return False
    above = module.parent(node)
    if isinstance(above, cst.ListComp):
        above = module.parent(above)
    if not isinstance(above, cst.Expr):
        return False
    root = node.func.value
    while isinstance(root, (cst.Attribute, cst.Subscript)):
        root = root.value
    return not (isinstance(root, cst.Name) and _is_import(module, root))


def _is_import(module: SourceModule, name: cst.Name) -> bool:
    scope = module.scope(name)
    assigned = scope[name.value] if scope is not None and name.value in scope else ()
    return any(
        isinstance(getattr(each, "node", None), (cst.Import, cst.ImportFrom)) for each in assigned
    )


def _bound_to(module: SourceModule, node: cst.Call) -> frozenset[str]:
    """The names that the result gets; the call itself where it is called at once."""
    above = module.parent(node)
    if isinstance(above, cst.Call) and above.func is node:
        return frozenset({module.code(node)})
    statement = module.around(node, cst.Assign, cst.AnnAssign, cst.NamedExpr)
    if isinstance(statement, cst.Assign):
        return frozenset(module.code(each.target) for each in statement.targets)
    if isinstance(statement, (cst.AnnAssign, cst.NamedExpr)):
        return frozenset({module.code(statement.target)})
    return frozenset()


def region_of(subject: Subject) -> Region:
    """The region that a recompiled function belongs to. Raises `Refused` if that is not plain."""
    found = own_regions(subject.program)
    if not found:
        raise Refused("torch.compile is not applied in one of your own files")
    if len(found) == 1:
        return found[0]
    known = region_for(found, subject.frame) if subject.frame is not None else None
    if known is not None:
        return known
    called = callees_of(subject)
    fitting = [region for region in found if region.names & called]
    if len(fitting) == 1:
        return fitting[0]
    raise Refused(
        "torch.compile is applied in several places, and it is unclear which one to change"
    )


def region_for(regions: Sequence[Region], code: CodeRef) -> Region | None:
    """The one that a function was compiled by; None where that is not plain."""
    for region in regions:
        if region.form == "decorator" and region.covers(code):
            return region
    for fits in (_compiles_function, _compiles_method):
        named = [region for region in regions if fits(region, code)]
        if len(named) == 1:
            return named[0]
    return None


def _compiles_function(region: Region, frame: CodeRef) -> bool:
    target = region.target
    if isinstance(target, cst.FunctionDef):
        return target.name.value == frame.function
    return isinstance(target, (cst.Name, cst.Attribute)) and (
        region.module.code(target).split(".")[-1] == frame.function
    )


def _compiles_method(region: Region, frame: CodeRef) -> bool:
    """The target is an object of the class that the recompiled method stands in."""
    if region.module.path != frame.file or region.target is None:
        return False
    module = region.module
    for name in _classes(module, region.target, 0):
        for node in module.tree.body:
            if isinstance(node, cst.ClassDef) and node.name.value == name:
                place = module.position(node)
                if place.start.line <= frame.line <= place.end.line:
                    return True
    return False


def _classes(module: SourceModule, node: cst.CSTNode, depth: int) -> set[str]:
    """Names that an object may have been made by: `Net` of `Net().eval()`, of `net = Net()`."""
    if depth > 5:
        return set()
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return {node.func.value}
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return _classes(module, node.func.value, depth + 1)
    scope = module.scope(node) if isinstance(node, cst.Name) else None
    if scope is None or not isinstance(node, cst.Name) or node.value not in scope:
        return set()
    found: set[str] = set()
    for each in scope[node.value]:
        bound = getattr(each, "node", None)
        assign = module.around(bound, cst.Assign) if bound is not None else None
        if assign is not None:
            found |= _classes(module, assign.value, depth + 1)
    return found


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


def _bound_by(module: SourceModule, given: cst.Name) -> list[Any]:
    scope = module.scope(given)
    return [getattr(each, "node", None) for each in scope[given.value]] if scope else []


def is_function(module: SourceModule, target: cst.CSTNode) -> bool:
    """Is what is compiled a function, by what the file shows? Else it may be a module."""
    if isinstance(target, cst.Name):
        bound = _bound_by(module, target)
        return bool(bound) and all(isinstance(node, cst.FunctionDef) for node in bound)
    return isinstance(target, (cst.Lambda, cst.FunctionDef))


def _of_name(module: SourceModule, call: cst.Call, given: cst.Name) -> Iterator[Application]:
    bound = _bound_by(module, given)
    if is_function(module, given):
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
