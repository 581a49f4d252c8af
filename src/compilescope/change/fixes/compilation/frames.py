"""Which function was being compiled when Dynamo stopped, and what of it must stay outside."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import GraphBreak
from compilescope.record.stack import CodeRef, Frame

_LARGEST_OUTSIDE = 4
"""Lines of a statement that goes outside. Chosen: what goes with it is no longer compiled."""
_WRAPPERS = ("torch/_dynamo/external_utils.py", "torch/utils/_contextlib.py")
_GRAD_MODES = {"torch.no_grad", "torch.enable_grad", "torch.inference_mode"}
# A code object begins at its first decorator, a definition after the last.
_DECORATORS = 20
"""Lines that the decorators of a function may take. Chosen: far more than usual."""


def check_root(subject: Subject) -> None:
    """Raises `Refused` unless the function around the break is what was being compiled, each time:
    of a function that is traced as part of another one, nothing can be left outside."""
    function = subject.function
    seen = False
    for event in subject.program.run.events_with(subject.finding.because):
        body = event.body
        if not isinstance(body, GraphBreak) or body.frame is None:
            continue
        seen = True
        if not _is_at_or_below(subject, body.frame, event.stack):
            raise Refused(
                f"`{function.name.value}` is part of another function's graph, so nothing in "
                "it can stay outside"
            )
    if not seen:
        raise NotMeant("it is unknown which function was being compiled")


def at_root(subject: Subject) -> Subject:
    """The call that leads there, where it is a statement of the function that was being compiled,
    the same each time. Raises `Refused` where it is not."""
    found: set[tuple[str, int]] = set()
    for event in subject.program.run.events_with(subject.finding.because):
        body = event.body
        if not isinstance(body, GraphBreak) or body.frame is None:
            continue
        # After a break Dynamo compiles what was being called by itself.
        if not _is_at_or_below(subject, body.frame, event.stack):
            root = body.frame
            places = [each for each in event.stack if is_frame_of(each, root)]
            found |= {(each.file, each.line) for each in places[:1]}
    if len(found) != 1:
        raise NotMeant("it is unknown from where it was called")
    file, line = found.pop()
    module = subject.program.module(file)
    node = module.node_at(line, None, None)
    there = subject.at(module, node) if node is not None else subject
    if own_statement(there, there.node) is not there.statement or not _is_call(there.statement):
        raise Refused("it is called in the middle of another function's work")
    return there


def is_frame_of(frame: Frame, code: CodeRef) -> bool:
    return frame.file == code.file and frame.function == code.function


def _is_call(statement: cst.BaseStatement) -> bool:
    """A call for its effect: nothing is computed with what it gives."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    only = statement.body[0]
    return isinstance(only, cst.Expr) and isinstance(only.value, cst.Call)


def _is_at_or_below(subject: Subject, frame: CodeRef, stack: Sequence[Frame]) -> bool:
    """Was it the function itself that was compiled, or something that it calls?"""
    module, function = subject.module, subject.function
    place = module.position(function)
    first = place.start.line - _DECORATORS
    if frame.file == subject.file and frame.function == function.name.value:
        return first <= frame.line <= place.end.line
    # What torch puts around a function with such a decorator goes when the decorator goes.
    wrapped = bool(grad_modes(module, function)) and frame.file.endswith(_WRAPPERS)
    for each in stack:
        if each.file == frame.file and each.function == frame.function and not wrapped:
            return False
        if each.file == subject.file and place.start.line <= each.line <= place.end.line:
            return True
    return False


def grad_modes(module: SourceModule, function: cst.FunctionDef) -> list[cst.Decorator]:
    """Decorators like `@torch.no_grad()`, whose wrapper is a frame of its own."""
    found = []
    for each in function.decorators:
        named = each.decorator.func if isinstance(each.decorator, cst.Call) else each.decorator
        if module.meaning(named) & _GRAD_MODES:
            found.append(each)
    return found


def stays_outside(subject: Subject, *, all_sites: bool) -> list[cst.BaseStatement]:
    """The statement of the function's body that Dynamo stopped at, here or also elsewhere in it.
    Raises `Refused` where one is too large to be left out."""
    module = subject.module
    found: list[cst.BaseStatement] = []
    for node in sites_in(subject) if all_sites else [subject.node]:
        statement = own_statement(subject, node)
        if statement is not None and statement not in found:
            found.append(statement)
    if not found:
        raise NotMeant("the line is not a statement in the function's own body")
    for statement in found:
        if sum(1 for each in module.walk(statement) if _is_line(each)) > _LARGEST_OUTSIDE:
            raise Refused("the statement around it does much else")
    return found


def sites_in(subject: Subject) -> list[cst.CSTNode]:
    """All that Dynamo stopped at in the function, but for what an earlier break left behind."""
    module, function = subject.module, subject.function
    found = []
    for site in subject.program.digest.sites:
        if site.file != subject.file or site.consequence_of is not None:
            continue
        node = module.node_at(site.line, site.column, site.end_column)
        if node is not None and module.function_of(node) is function:
            found.append(node)
    return found


def own_statement(subject: Subject, node: cst.CSTNode) -> cst.BaseStatement | None:
    """The statement of the function's own body that a node is in."""
    module, block = subject.module, subject.function.body
    for each in (node, *module.ancestors(node)):
        if module.parent(each) is block and isinstance(each, cst.BaseStatement):
            return each
    return None


def _is_line(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine)
