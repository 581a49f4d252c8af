"""Recompiles: for every earlier compilation, every guard that failed and the value that broke it.

This point is passed once for each cache entry; `compile_times` ends the frame and joins them.
"""

from __future__ import annotations

from compilescope.model.bodies import CacheEntryMiss, FailedGuard
from compilescope.torchapi.guard_checks import failed_guards, readable, without_comment
from compilescope.torchapi.hook import Call, Hook, Watch


def _record(watch: Watch, call: Call) -> None:
    manager = call["guard_manager"]
    reason = str(call.result or "")
    first_line = reason.split("\n", 1)[0]
    words = first_line.split(": ", 1)[-1]
    frames = watch.guard_frames.get(manager, {})
    failed = failed_guards(manager, call["f_locals"], frames)
    invalid = getattr(manager, "invalidation_reason", None)
    if invalid:
        failed = [FailedGuard(str(invalid), "the guarded object", "alive", "gone", "WEAKREF")]
    elif not failed and words:
        # The walk cannot ask relational guards, nor see another backend: torch's word stands.
        text = readable(without_comment(words))
        failed = [FailedGuard(text, text.split(" ", 1)[0], kind="OTHER")]
    miss = CacheEntryMiss(str(call["compile_id"]), tuple(failed), words)
    watch.frame.misses.append((call["code"], miss))


HOOK = Hook(
    id="recompiles",
    module="torch._dynamo.guards",
    target="get_guard_fail_reason",
    loses="why frames were compiled again",
    after=_record,
)
