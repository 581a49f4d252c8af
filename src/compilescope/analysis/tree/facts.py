"""What the compile tree shows of one compilation: the line that called it, and its breaks."""

from __future__ import annotations

import re
from typing import Literal

from compilescope.analysis.timeline.marks import failed_guards
from compilescope.analysis.tree.compilations import Compilation
from compilescope.analysis.tree.frames import TreeCompilation
from compilescope.model.bodies import Recompile
from compilescope.model.stack import CodeRef, Frame

_STACK_VALUE = re.compile(r"___stack\d+")


def own_frame(
    code: CodeRef, callers: tuple[Frame, ...] | None, stack: tuple[Frame, ...]
) -> Frame | None:
    """The compiled function itself in the stack of a break within it."""

    def is_own(frame: Frame) -> bool:
        return (frame.file, frame.function) == (code.file, code.function)

    if callers is not None:
        # The rest of a function shows as one frame with the part that called it.
        depth = len(callers) - (1 if code.resumed else 0)
        if 0 <= depth < len(stack) and is_own(stack[depth]):
            return stack[depth]
    return next(filter(is_own, stack), stack[-1] if stack else None)


def expression_of(frame: Frame | None) -> str:
    if frame is None or frame.column is None or frame.end_column is None:
        return ""
    return frame.source[frame.column : frame.end_column]


def told_compilation(one: Compilation, first_call: Frame | None, broken: str) -> TreeCompilation:
    """`broken` is the expression at the break before it, `first_call` where the frame was called
    first."""
    forward = [told for told in one.times if told.phase == "forward"]
    backward = [told for told in one.times if told.phase == "backward"]
    went: Literal["", "compiled", "failed"] = ""
    if backward:
        went = "compiled" if all(told.ok for told in backward) else "failed"
    return TreeCompilation(
        compile_ids=(one.compile_id,),
        key=one.key,
        ops=tuple(graph.ops for graph in one.graphs),
        ended_by_break=one.graphs[-1].ended_by_break if one.graphs else None,
        backend=one.graphs[-1].backend if one.graphs else None,
        ok=forward[-1].ok if forward else None,
        recompiled=_recompiled(one.recompile, broken),
        called_from=_other_call(first_call, one.callers),
        again=one.recompile is not None,
        refused=one.recompile.refused if one.recompile is not None else "",
        backward=went,
        failures=tuple(f"{failed.phase} failed: {failed.error}" for failed in one.failures),
        duration_ns=sum(told.duration_ns for told in one.times),
        within_another=one.within is not None,
    )


def _recompiled(body: Recompile | None, broken: str) -> str:
    """The failed guards; the value of a broken expression is what Dynamo left on top of a stack."""
    text = failed_guards(body) if body is not None else ""
    top = max(_STACK_VALUE.findall(text), default="") if broken else ""
    return text.replace(top, broken) if top else text


def _other_call(first: Frame | None, callers: tuple[Frame, ...] | None) -> Frame | None:
    if first is None or not callers:
        return None
    call = callers[-1]
    same = (call.file, call.line, call.function) == (first.file, first.line, first.function)
    return None if same else call
