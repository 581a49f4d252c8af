"""When each phase of a compilation begins and ends, as torch times it for its own logs.

Both pass through one function, whoever logs them: `dynamo_timed`, Dynamo itself, compiled autograd.
"""

from __future__ import annotations

from typing import Any

from compilescope.torchapi.hook import Hook, HookedCall, Watch


def _record(watch: Watch, call: HookedCall) -> None:
    log = watch.phases
    if log is None:
        return
    if len(call.args) == 5:
        # As torch calls it. There are hundreds of these a compilation: binding by name is slower.
        _, name, time_ns, kind, metadata = call.args
    else:
        name, time_ns, kind = call["event_name"], call["time_ns"], call["phase"]
        metadata = call.get("metadata")
    noted: dict[str, Any] = metadata or {}
    if kind == "B":
        compile_id = noted.get("compile_id")
        # torch writes the absence of an id as a word.
        log.begin(str(name), int(time_ns), None if compile_id in (None, "None") else compile_id)
    elif kind == "E":
        log.end(str(name), int(time_ns), noted)


HOOK = Hook(
    id="phases",
    module="torch._dynamo.utils",
    target="ChromiumEventLogger._log_timed_event",
    loses="when each compile phase began and ended",
    before=_record,
)
