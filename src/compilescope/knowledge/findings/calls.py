"""The user's calls that compiled something again.

A guard may stand anywhere below the call: in an installed package its line says nothing to a user,
and the value that failed it came from where the call is.
"""

from __future__ import annotations

import msgspec

from compilescope.knowledge.findings.recompiles import RecompiledFrame, RecompileFinding
from compilescope.record.bodies import Recompile
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import innermost_own_line


def with_calls(run: Run, frames: list[RecompiledFrame]) -> list[RecompiledFrame]:
    """Each cause with the call of the recompile that showed it first."""
    if not frames:
        return frames
    events = {event.id: event for event, _ in run.of(Recompile)}
    return [
        msgspec.structs.replace(
            frame, causes=tuple([_with_call(cause, events) for cause in frame.causes])
        )
        for frame in frames
    ]


def _with_call(cause: RecompileFinding, events: dict[str, Event]) -> RecompileFinding:
    event = events.get(cause.because[0]) if cause.because else None
    call = innermost_own_line(event.stack) if event is not None else None
    if call is None or (call.file, call.line) == (cause.file, cause.line):
        return cause
    return msgspec.structs.replace(cause, called_at=call)
