"""When each phase of a compilation begins and ends, as torch times it for its own logs.

Both pass through one function, whoever logs them: `dynamo_timed`, Dynamo itself, compiled autograd.
"""

from __future__ import annotations

from typing import Any

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch


def _note(watch: Watch, args: tuple[Any, ...], _: Any) -> bool:
    """As torch calls it. There are hundreds of these a compilation: binding by name is slower."""
    log = watch.phases
    if len(args) != 5 or log is None:
        return log is None
    _, name, time_ns, kind, metadata = args
    if kind == "B":
        compile_id = metadata.get("compile_id") if metadata else None
        # torch writes the absence of an id as a word.
        log.begin(str(name), int(time_ns), None if compile_id in (None, "None") else compile_id)
    elif kind == "E":
        log.end(str(name), int(time_ns), metadata or {})
    return True


def _record(watch: Watch, call: HookedCall) -> None:
    name, time_ns, kind = call["event_name"], call["time_ns"], call["phase"]
    _note(watch, (None, name, time_ns, kind, call.get("metadata")), None)


HOOK = Hook(
    id="phases",
    module="torch._dynamo.utils",
    target="ChromiumEventLogger._log_timed_event",
    loses="when each compile phase began and ended",
    before=_record,
    settles=_note,
)
