"""Where the program calls what it compiled, and where a line can go before such a call.

The stacks of a run say from which lines a function was compiled; every other call of the same
thing in that file belongs to them, since the first call decides what is compiled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import CompileTime, Recompile
from compilescope.model.stack import Frame, shown_code


@dataclass(frozen=True)
class CallSite:
    """One call of a compiled function."""

    module: SourceModule
    call: cst.Call

    @property
    def callee(self) -> str:
        return self.module.code(self.call.func)


def call_sites(subject: Subject) -> list[CallSite]:
    """All calls of the compiled function in the user's own files. Raises `Refused` if none."""
    seen = {site.module.path: set[str]() for site in _seen_calls(subject)}
    for site in _seen_calls(subject):
        seen[site.module.path].add(site.callee)
    found: list[CallSite] = []
    for path, callees in seen.items():
        module = subject.program.module(path)
        for node in module.walk():
            if isinstance(node, cst.Call) and module.code(node.func) in callees:
                found.append(CallSite(module, node))
    if not found:
        raise Refused("the compiled function is not called in one of your own files")
    return found


def callees_of(subject: Subject) -> set[str]:
    """By which names it was seen to be called."""
    return {site.callee for site in _seen_calls(subject)}


def _seen_calls(subject: Subject) -> list[CallSite]:
    found: dict[cst.Call, CallSite] = {}
    for frame in _calling_frames(subject):
        try:
            module = subject.program.module(frame.file)
        except Refused:
            continue
        call = _call_at(module, frame, subject)
        if call is not None:
            found.setdefault(call, CallSite(module, call))
    return list(found.values())


def _calling_frames(subject: Subject) -> Iterator[Frame]:
    """The user's line at which each compilation of the function began, without repeats."""
    wanted = subject.frame
    if wanted is None:
        return
    known: set[tuple[str, int, int | None]] = set()
    for event in subject.program.run.events:
        body = event.body
        if not isinstance(body, (CompileTime, Recompile)) or body.frame is None:
            continue
        code = shown_code(body.frame, event.stack)
        if (code.file, code.line, code.function) != (wanted.file, wanted.line, wanted.function):
            continue
        stack = [frame for frame in event.stack if frame.origin in ("user", "library")]
        # A library's line at the end: it called something else than what the user called.
        if stack and subject.program.is_own(stack[-1].file):
            place = (stack[-1].file, stack[-1].line, stack[-1].column)
            if place not in known:
                known.add(place)
                yield stack[-1]


def _call_at(module: SourceModule, frame: Frame, subject: Subject) -> cst.Call | None:
    node = module.node_at(frame.line, frame.column, frame.end_column)
    if isinstance(node, cst.Call) and frame.column is not None:
        return node
    # Without columns (Python 3.10): the only call on the line that is not torch's or built in.
    calls = [
        each
        for each in module.walk()
        if isinstance(each, cst.Call)
        and module.line(each) == frame.line
        and not any(name.startswith(("torch.", "builtins.")) for name in module.meaning(each.func))
    ]
    return calls[0] if len(calls) == 1 else None


_CONSTANTS = (cst.Integer, cst.Float, cst.SimpleString)


def is_plain(node: cst.BaseExpression) -> bool:
    """A name, an attribute or an item of one: reading it again does nothing."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        if isinstance(node, cst.Subscript):
            parts = [getattr(each.slice, "value", None) for each in node.slice]
            if not all(isinstance(part, (cst.Name, *_CONSTANTS)) for part in parts):
                return False
        node = node.value
    return isinstance(node, (cst.Name, *_CONSTANTS))


def hoisted(
    edit: Edit, site: CallSite, arg: cst.Arg, wanted: str, earlier: Collection[cst.Arg] = ()
) -> str:
    """A name for an argument's value before the call's statement: its own where it is plain, else
    a new one that the call then passes. What is evaluated before it goes first, too; `earlier` are
    arguments that have got a name already."""
    module = site.module
    if is_plain(arg.value):
        return module.code(arg.value)
    statement = statement_before(site)
    _check_order(site)
    for each in site.call.args:
        if each is arg:
            break
        if each not in earlier and not is_plain(each.value):
            raise Refused("earlier arguments are computed in the call and would come after it")
    scope = module.scope(site.call)
    name = wanted if scope is not None and wanted not in scope else module.fresh_name(wanted)
    edit.put_before(statement, f"{name} = {module.code(arg.value)}")
    edit.replace(arg.value, cst.Name(name))
    return name


def _check_order(site: CallSite) -> None:
    """Nothing may run before the call within its statement."""
    statement = site.module.statement_of(site.call)
    for node in site.module.walk(statement):
        if node is site.call:
            return
        if isinstance(node, (cst.Call, cst.Await, cst.Yield)) and node not in set(
            site.module.ancestors(site.call)
        ):
            raise Refused("another call in the same statement runs first")


def statement_before(site: CallSite) -> cst.BaseStatement:
    """The statement before which a line runs once for each time that the call does.
    Raises `Refused` in a comprehension, a lambda, a `while` test and the like."""
    module = site.module
    for above in module.ancestors(site.call):
        if isinstance(
            above, (cst.BaseComp, cst.CompFor, cst.Lambda, cst.IfExp, cst.BooleanOperation)
        ):
            raise Refused("the call is part of an expression that may run it many times or never")
        if isinstance(above, cst.While):
            raise Refused("the call is the condition of a loop")
        if isinstance(above, cst.SimpleStatementSuite):
            raise Refused("the call shares a line with the statement around it")
        if isinstance(above, (cst.SimpleStatementLine, cst.If, cst.For, cst.With)):
            _check_block(module, above)
            return above
        if isinstance(above, cst.BaseCompoundStatement):
            break
    raise Refused("no line can be inserted before the call")


def _check_block(module: SourceModule, statement: cst.BaseStatement) -> None:
    above = module.parent(statement)
    if isinstance(above, cst.If) and above.orelse is statement:
        raise Refused("the call is the condition of an `elif`")
    module.block_of(statement)
