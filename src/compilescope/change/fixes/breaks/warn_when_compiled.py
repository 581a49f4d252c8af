"""A warning given while the code is compiled, which is when it would be seen first."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.custom_operator import outline_constant
from compilescope.change.fixes.statements.outputs import is_told_once, output_call
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_STATES = "The warning appears when the code is compiled, before any of it runs."


def _propose(subject: Subject) -> Patch:
    module, call = subject.module, output_call(subject)
    if module.calls(call, "warnings.warn"):
        _check_level(call)
    elif not is_told_once(call):
        raise NotMeant("it is shown on every call, not once")
    edit = Edit(module)
    outline_constant(edit, call, "warn")
    return Patch(edit.files(), states=_STATES, allows=frozenset({"moves-output", "drops-output"}))


def _check_level(call: cst.Call) -> None:
    for number, arg in enumerate(call.args):
        name = (
            arg.keyword.value if arg.keyword is not None else ("", "", "stacklevel")[min(number, 2)]
        )
        if name == "stacklevel" and not (
            isinstance(arg.value, cst.Integer) and arg.value.value == "1"
        ):
            raise Refused("the warning names a line of the caller, which would be a different one")


FIX = Fix(
    id="warn-when-compiled",
    title="warn when the code is compiled",
    rules=frozenset({"logging-call"}),
    order=56,
    kind="source",
    why="Such a message is shown once, and Dynamo calls a function under "
    "`assume_constant_result` once, while tracing. A cached message is not shown again.",
    propose=_propose,
    observable=True,
)
