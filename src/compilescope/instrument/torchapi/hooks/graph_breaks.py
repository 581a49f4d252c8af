"""Graph breaks: the root cause, where in the user's code, and what became of the frame."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.stacks import (
    callers,
    code_ref,
    full_stack,
    with_code,
    with_columns,
)
from compilescope.instrument.torchapi.values import traced_values
from compilescope.record.bodies import BreakOutcome, GraphBreak
from compilescope.record.stack import CodeRef, Frame


def _outcome(reason: str, code: CodeRef) -> BreakOutcome:
    # torch 2.11 and 2.13 say it in words only, at the start of the reason.
    if reason.startswith("Failed to handle graph break gracefully"):
        return "rest-eager" if code.resumed else "frame-eager"
    if reason.startswith("Encountered graph break that we cannot resume from"):
        return "rest-eager"
    return "resumed"


def _record(watch: Watch, call: HookedCall) -> None:
    error: Any = call["exc"]
    if _told(lambda: getattr(error, "logged", False), False):
        return
    translator: Any = call["self"]
    message = _told(lambda: str(getattr(error, "msg", None) or error), type(error).__name__)
    root, wrappers = watch.texts.root_and_wrappers(message)
    code = translator.f_code
    where = code_ref(code)
    nothing: dict[str, Any] = {}
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
        **_told(lambda: _held(error, translator), nothing),
    )
    memory = watch.frame
    compile_id = current_compile_id()
    # What the backend is given is written before it is, and this with it.
    more = watch.is_written_soon(compile_id)
    stack = _stack(error, translator, where)
    memory.last_break_id = watch.sink.emit(body, stack, compile_id, more=more)
    memory.last_break = body
    memory.code = code


def _stack(error: Any, translator: Any, where: CodeRef) -> list[Frame]:
    traced = _told(lambda: getattr(error, "real_stack", None), None)
    plain = _told(lambda: full_stack(traced), None)
    if plain is None:
        return _told(lambda: with_code(callers(), where), [])
    return _told(lambda: with_columns(plain, error, translator), plain)


def _held(error: BaseException, translator: Any) -> dict[str, Any]:
    """What variables held helps to say what to do."""
    code, values = traced_values(error, translator)
    return {"within": code_ref(code), "values": values} if code is not None else {}


_Part = TypeVar("_Part")


def _told(ask: Callable[[], _Part], otherwise: _Part) -> _Part:
    """One part of what is told. The break is told without it too: Dynamo's objects are private, and
    to ask one may raise whatever tracing raises, a graph break too."""
    handled = sys.exc_info()[1]
    try:
        return ask()
    except Exception as refused:  # The border.
        let_through(refused, handled)
        return otherwise


HOOK = Hook(
    id="graph-breaks",
    module="torch._dynamo.symbolic_convert",
    target="InstructionTranslatorBase.log_graph_break",
    loses="graph breaks",
    before=_record,
)
