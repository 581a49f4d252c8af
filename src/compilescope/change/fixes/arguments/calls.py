"""Where the program calls what it compiled, and where a line can go before such a call.

The stacks of a run say from which lines a function was compiled; every other call of the same
thing in that file belongs to them, since the first call decides what is compiled. A call may name
the function itself, or its compiled form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from compilescope.change.fixes.compilation.run_index import index_of
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of, parameters_of, receiver_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds
from compilescope.record.stack import Frame

_CALLS, _CALLEES = "calls", "callees"
"""Where a module keeps what is sought here."""


class CallSite(msgspec.Struct, frozen=True):
    """One call of a compiled function."""

    module: SourceModule
    call: cst.Call

    @property
    def callee(self) -> str:
        return self.module.code(self.call.func)


def call_sites(subject: Subject) -> list[CallSite]:
    """All calls of the compiled function in the user's own files. Raises `Refused` if none."""
    seen: dict[str, set[str]] = {}
    for site in _seen_calls(subject):
        seen.setdefault(site.module.path, set()).add(site.callee)
    found: list[CallSite] = []
    for path, callees in seen.items():
        module = subject.program.module(path)
        named = zip(_calls(module), _callees(module), strict=True)
        found += [CallSite(module, call) for call, callee in named if callee in callees]
    if not found:
        raise Refused("the compiled function is not called in one of your own files")
    return found


def _calls(module: SourceModule) -> list[cst.Call]:
    """All of a file, in source order, sought once."""
    if _CALLS not in module.kept:
        module.kept[_CALLS] = [node for node in module.walk() if isinstance(node, cst.Call)]
    return module.kept[_CALLS]


def _callees(module: SourceModule) -> list[str]:
    """What each of them calls, as it is written."""
    if _CALLEES not in module.kept:
        module.kept[_CALLEES] = [module.code(call.func) for call in _calls(module)]
    return module.kept[_CALLEES]


def callees_of(subject: Subject) -> set[str]:
    """By which names it was seen to be called."""
    return {site.callee for site in _seen_calls(subject)}


def _seen_calls(subject: Subject) -> list[CallSite]:
    """Raises `NotTried` where they lie in more files than a report can look at."""
    found: dict[cst.Call, CallSite] = {}
    frames = list(_calling_frames(subject))
    subject.program.check_callers(frame.file for frame in frames)
    for frame in frames:
        try:
            module = subject.program.module(frame.file)
        except Refused:
            continue
        call = _call_at(module, frame)
        if call is not None:
            found.setdefault(call, CallSite(module, call))
    return list(found.values())


def _calling_frames(subject: Subject) -> Iterator[Frame]:
    """The user's line at which each compilation of the function began, without repeats."""
    wanted = subject.frame
    if wanted is None:
        return
    known: set[tuple[str, int, int | None]] = set()
    compiled = index_of(subject.program.run).compiled
    events = compiled.get((wanted.file, wanted.line, wanted.function), ())
    # Thousands of events share a stack.
    for frames in {id(event.stack): event.stack for event in events}.values():
        stack = [frame for frame in frames if frame.origin in ("user", "library")]
        # A library's line at the end: it called something else than what the user called.
        if stack and subject.program.is_own(stack[-1].file):
            place = (stack[-1].file, stack[-1].line, stack[-1].column)
            if place not in known:
                known.add(place)
                yield stack[-1]


def _call_at(module: SourceModule, frame: Frame) -> cst.Call | None:
    node = module.node_at(frame.line, frame.column, frame.end_column)
    if isinstance(node, cst.Call) and frame.column is not None:
        return node
    # Without columns (Python 3.10): the only call on the line that is not torch's or built in.
    calls = [
        each
        for each in _calls(module)
        if module.line(each) == frame.line
        and not any(name.startswith(("torch.", "builtins.")) for name in module.meaning(each.func))
    ]
    return calls[0] if len(calls) == 1 else None


_CONSTANTS = kinds(lambda: (cst.Integer, cst.Float, cst.SimpleString))


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


def statement_before(site: CallSite) -> cst.CSTNode:
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
            simple = isinstance(above, cst.SimpleStatementLine)
            return module.smallest_statement(site.call) if simple else above
        if isinstance(above, cst.BaseCompoundStatement):
            break
    raise Refused("no line can be inserted before the call")


def _check_block(module: SourceModule, statement: cst.BaseStatement) -> None:
    above = module.parent(statement)
    if isinstance(above, cst.If) and above.orelse is statement:
        raise Refused("the call is the condition of an `elif`")
    module.block_of(statement)


def calls_of(subject: Subject, function: cst.FunctionDef) -> Iterator[cst.Call]:
    """`f(...)`, `compiled(...)` after `compiled = torch.compile(f)`, `torch.compile(f)(...)`; of a
    `forward`, calls of what was made of its class; `model(...)` in a function of the file that
    gets the compiled one as its `model`."""
    module = subject.module
    made = module.class_of(function)
    names = _names_of(module, function, made)
    handed = _handed_on(module, names | ({made.name.value} if made is not None else set()))
    for node in _calls(module):
        func = node.func
        by_name = isinstance(func, cst.Name) and (
            func.value in names or (module.function_of(node), func.value) in handed
        )
        at_once = isinstance(func, cst.Call) and _makes(module, func, names)
        if by_name or at_once or (made is not None and _is_method(func, function.name.value)):
            yield node


def _handed_on(module: SourceModule, names: set[str]) -> set[tuple[cst.FunctionDef | None, str]]:
    """Parameters of functions of the file that every call gives one of these for, or its compiled
    form."""
    given: dict[tuple[cst.FunctionDef | None, str], list[bool]] = {}
    for call in _calls(module):
        defined = definitions_of(module, call.func) if isinstance(call.func, cst.Name) else []
        for called in defined:
            if not isinstance(called, cst.FunctionDef):
                continue
            for name in parameters_of(called):
                value = argument_for(module, called, call, name)
                ours = value is not None and _is_one_of(value, names)
                ours |= isinstance(value, cst.Call) and _makes(module, value, names)
                given.setdefault((called, name), []).append(ours)
    return {place for place, found in given.items() if all(found)}


def _is_method(func: cst.BaseExpression, name: str) -> bool:
    """A method called by its own name; a `forward` is not."""
    return isinstance(func, cst.Attribute) and func.attr.value == name and name != "forward"


def _names_of(
    module: SourceModule, function: cst.FunctionDef, made: cst.ClassDef | None
) -> set[str]:
    """Names of the file that stand for the function, compiled or not."""
    known = {function.name.value} if made is None else set()
    if made is not None:
        known.add(made.name.value)
    instances = set(known) if made is None else set()
    # Each pass goes one step further: model = Model(); compiled = torch.compile(model).
    for _ in range(3):
        for node in module.walk():
            if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.Call):
                continue
            called = node.value.func
            from_class = (
                made is not None
                and isinstance(called, cst.Name)
                and (called.value == made.name.value)
            )
            if from_class or _makes(module, node.value, known | instances):
                instances |= {
                    each.target.value for each in node.targets if isinstance(each.target, cst.Name)
                }
    return instances


def _makes(module: SourceModule, call: cst.Call, names: set[str]) -> bool:
    """Is it `torch.compile` of one of these, or a patch around that?"""
    parts = [each for each in module.walk(call) if isinstance(each, cst.Call)]
    compiles = [each for each in parts if module.calls(each, "torch.compile")]
    return any(
        _is_one_of(arg.value, names)
        or (isinstance(arg.value, cst.Call) and _is_one_of(arg.value.func, names))
        for each in compiles
        for arg in each.args
        if arg.keyword is None
    )


def _is_one_of(node: cst.BaseExpression, names: set[str]) -> bool:
    return isinstance(node, cst.Name) and node.value in names


def place_of(module: SourceModule, function: cst.FunctionDef, name: str) -> int | None:
    """The position of a parameter in a call; None where it can only be a keyword."""
    positional = [
        each.name.value for each in (*function.params.posonly_params, *function.params.params)
    ]
    if receiver_of(module, function):
        positional = positional[1:]
    return positional.index(name) if name in positional else None


def argument_for(
    module: SourceModule, function: cst.FunctionDef, call: cst.Call, name: str
) -> cst.BaseExpression | None:
    """What a call hands in for a parameter; None where that cannot be told."""
    for arg in call.args:
        if arg.star:
            return None
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    plain = [arg.value for arg in call.args if arg.keyword is None]
    place = place_of(module, function, name)
    return plain[place] if place is not None and place < len(plain) else None
