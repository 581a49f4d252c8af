"""A print that Dynamo may move behind the graph, allowed by `reorderable_logging_functions`."""

from __future__ import annotations

from compilescope.change.fixes.compilation.settings import with_flag
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.outputs import output_call
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import GraphBreak
from compilescope.record.stack import CodeRef, Frame

_STATES = "The output appears after the graph it was part of."


def _propose(subject: Subject) -> Patch:
    module, call = subject.module, output_call(subject)
    names = {"builtins.print": "print", "warnings.warn": module.code(call.func)}
    function = next((names[m] for m in module.meaning(call.func) if m in names), None)
    if function is None:
        raise NotMeant("Dynamo cannot move this kind of output")
    # torch 2.13 drops every keyword: `end=`, `sep=`, `stacklevel=`.
    lost = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value != "flush"]
    if lost or any(arg.star for arg in call.args):
        raise Refused("Dynamo would drop the keyword arguments of the call")
    if function != "print" and len(call.args) != 1:
        raise Refused("Dynamo cannot move a warning that names its category")
    if not _is_outermost(subject):
        raise Refused("Dynamo would drop it: it is not in the compiled function itself")
    _check_nothing_changes(subject, call)
    edit = Edit(module)
    for arg in call.args:
        if _is_shape(arg.value):
            # Printed, it is the same; Dynamo keeps text for later, and no tuple. An f-string also
            # where sizes vary: `str` would end the graph (torch 2.13).
            edit.replace(arg.value, edit.expression(_as_text(module.code(arg.value))))
        elif _is_container(arg.value):
            shown = module.code(arg.value)
            raise Refused(f"Dynamo moves tensors, numbers and text, but not `{shown}`")
    return with_flag(
        subject,
        "reorderable_logging_functions",
        f"{{{function}}}",
        edit=edit,
        states=_STATES,
        allows=frozenset({"moves-output"}),
    )


def _as_text(shape: str) -> str:
    quote = "'" if '"' in shape else '"'
    if quote in shape or "\\" in shape or "\n" in shape:
        raise Refused(f"`{shape}` does not fit into an f-string")
    return f"f{quote}{{{shape}}}{quote}"


def _is_shape(value: cst.BaseExpression) -> bool:
    """`x.shape`, `x.size()`, or a tuple or list of it."""
    if isinstance(value, cst.Attribute):
        return value.attr.value == "shape"
    if not isinstance(value, cst.Call):
        return False
    if isinstance(value.func, cst.Attribute):
        return value.func.attr.value == "size" and not value.args
    named = isinstance(value.func, cst.Name) and value.func.value in ("tuple", "list")
    return named and len(value.args) == 1 and _is_shape(value.args[0].value)


def _is_container(value: cst.BaseExpression) -> bool:
    """By how it is written; what a name holds is left to the trial."""
    if isinstance(value, cst.Call):
        func = value.func
        if isinstance(func, cst.Attribute):
            return func.attr.value in ("tolist", "keys", "values", "items")
        made = ("tuple", "list", "dict", "set", "sorted", "type")
        return isinstance(func, cst.Name) and func.value in made
    return isinstance(value, (cst.Tuple, cst.List, cst.Dict, cst.Set, cst.BaseComp))


def _is_outermost(subject: Subject) -> bool:
    """torch 2.13 forgets what a function prints that it traces as part of another one, or of
    itself."""
    place = subject.module.position(subject.function)
    # A decorated function begins at its decorator, which may stand above.
    first = min([place.start.line, *map(subject.module.line, subject.function.decorators)])

    def is_its(frame: CodeRef | Frame) -> bool:
        same = frame.file == subject.file and frame.function == subject.function.name.value
        return same and first <= frame.line <= place.end.line

    events = subject.program.run.events_with(subject.finding.because)
    broken = [event for event in events if isinstance(event.body, GraphBreak)]
    frames = [event.body.frame for event in broken if isinstance(event.body, GraphBreak)]
    calls_itself = any(sum(map(is_its, event.stack)) > 1 for event in broken)
    outermost = all(frame is not None and is_its(frame) for frame in frames)
    return bool(frames) and outermost and not calls_itself


def _check_nothing_changes(subject: Subject, call: cst.Call) -> None:
    """Printed later, a tensor that was changed in place meanwhile shows its new numbers."""
    if not subject.module.names_in(call) - {"print", "warnings"}:
        return
    for node in subject.module.walk(subject.function.body):
        if isinstance(node, cst.AugAssign):
            raise Refused(
                "the function changes values in place, and a later print would show the new values"
            )
        if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript):
            raise Refused(
                "the function changes values in place, and a later print would show the new values"
            )
        name = node.attr.value if isinstance(node, cst.Attribute) else ""
        if name.endswith("_") and not name.endswith("__"):
            raise Refused(
                "the function changes values in place, and a later print would show the new values"
            )


FIX = Fix(
    id="print-after-graph",
    title="let Dynamo print after the graph",
    rules=frozenset({"print-call", "logging-call"}),
    order=57,
    kind="config",
    why="With `reorderable_logging_functions`, Dynamo collects the calls and makes them once "
    "the graph has run. The lines keep their order.",
    propose=_propose,
    observable=True,
)
