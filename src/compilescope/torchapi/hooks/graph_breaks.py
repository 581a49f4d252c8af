"""Graph breaks: the root cause, where in the user's code, and what became of the frame."""

from __future__ import annotations

from typing import Any

from compilescope.model.bodies import BreakOutcome, GraphBreak
from compilescope.model.stack import CodeRef
from compilescope.processes.interruptions import let_through
from compilescope.torchapi.compilation.current import current_compile_id
from compilescope.torchapi.hook import Hook, HookedCall, Watch
from compilescope.torchapi.stacks import code_ref, full_stack, with_columns
from compilescope.torchapi.values import traced_values


def _outcome(reason: str, code: CodeRef) -> BreakOutcome:
    # torch 2.11 and 2.13 say it in words only, at the start of the reason.
    if reason.startswith("Failed to handle graph break gracefully"):
        return "rest-eager" if code.resumed else "frame-eager"
    if reason.startswith("Encountered graph break that we cannot resume from"):
        return "rest-eager"
    return "resumed"


def _record(watch: Watch, call: HookedCall) -> None:
    error: Any = call["exc"]
    if getattr(error, "logged", False):
        return
    translator: Any = call["self"]
    root, wrappers = watch.texts.root_and_wrappers(getattr(error, "msg", None) or str(error))
    code = translator.f_code
    where = code_ref(code)
    body = GraphBreak(
        gb_type=root.gb_type,
        gb_id=root.gb_id,
        explanation=root.explanation,
        hints=root.hints,
        context=root.context,
        wrappers=wrappers,
        outcome=_outcome(call["reason"], where),
        error=type(error).__name__,
        frame=where,
        **_held(error, translator),
    )
    stack = with_columns(full_stack(getattr(error, "real_stack", None)), error, translator)
    memory = watch.frame
    compile_id = current_compile_id()
    # What the backend is given is written before it is, and this with it.
    more = watch.is_written_soon(compile_id)
    memory.last_break_id = watch.sink.emit(body, stack, compile_id, more=more)
    memory.last_break = body
    memory.code = code


def _held(error: BaseException, translator: Any) -> dict[str, Any]:
    """What variables held helps to say what to do. The break itself is told without it too."""
    try:
        code, values = traced_values(error, translator)
    except Exception as refused:
        # The border: Dynamo's variables are private, and may be others elsewhere.
        let_through(refused)
        return {}
    return {"within": code_ref(code), "values": values} if code is not None else {}


HOOK = Hook(
    id="graph-breaks",
    module="torch._dynamo.symbolic_convert",
    target="InstructionTranslatorBase.log_graph_break",
    loses="graph breaks",
    before=_record,
)
