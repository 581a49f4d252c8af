"""Recompiles: for every earlier compilation, the guards that failed and the values that broke them.

Of a frame that is compiled again and again, only for one compilation of each kind of failure. This
point is passed once for each cache entry; `compile_times` ends the frame and joins them.
"""

from __future__ import annotations

import re
from typing import Any

from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.guards.checks import failed_guards
from compilescope.instrument.torchapi.guards.versions import fails_of
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.record.bodies import CacheEntryMiss, FailedGuard
from compilescope.record.guards import readable, without_comment
from compilescope.record.storms import MOST_WALKED, compilation_number, frame_number

_NO_ACCESS = re.compile(r"^\w+GuardAccessor: (?P<why>.+) on (?P<subject>\S+)$")
_LENGTH = re.compile(r"^len\((?P<what>.+)\) != (?P<size>\d+)$")
_SUBJECTS = {"BACKEND_MATCH": "the backend", "Duplicate": "aliasing of arguments"}


def _fold(watch: Watch, args: tuple[Any, ...], reason: Any) -> bool:
    """In a storm there are hundreds of entries a compilation: most are counted here."""
    misses = watch.thread.frame.misses
    # As torch calls it, with `skip_logging` last.
    return misses.storm and len(args) == 6 and not args[5] and misses.fold(args[3], reason or "")


def _record(watch: Watch, call: HookedCall) -> None:
    manager, code, f_locals = call["guard_manager"], call["code"], call["f_locals"]
    compile_id = call["compile_id"]
    if call.get("skip_logging"):
        return  # The stance `fail_on_recompile`: nothing is compiled again.
    misses = watch.frame.misses
    if not misses:
        current = current_compile_id()
        misses.storm = compilation_number(current) > MOST_WALKED
        if watch.versions is not None:
            watch.versions.note_miss(frame_number(current))
    if misses.code is None:
        misses.code = code
    reason = str(call.result or "")
    if not (misses.storm and misses.fold(compile_id, reason)):
        # In a storm all of the entry that was used last, and of each other kind the first alone.
        first_only = misses.storm and bool(misses)
        miss = _miss(watch, manager, f_locals, str(compile_id), reason, first_only)
        misses.list(miss, reason)


def _miss(
    watch: Watch,
    manager: Any,
    f_locals: dict[str, Any],
    compile_id: str,
    reason: str,
    first_only: bool,
) -> CacheEntryMiss:
    """An entry with every guard that fails, or the first."""
    words = reason.split("\n", 1)[0].split(": ", 1)[-1]
    frames = watch.guard_frames.get(manager, {})
    most = {"most": 1} if first_only else {}
    failed = failed_guards(manager, f_locals, frames, **most)
    invalid = getattr(manager, "invalidation_reason", None)
    if invalid:
        failed = [FailedGuard(str(invalid), "the guarded object", "alive", "gone", "WEAKREF")]
    elif not failed and words:
        failed = [_in_torchs_words(readable(without_comment(words)), f_locals)]
    return CacheEntryMiss(compile_id, tuple(failed), words, fails=fails_of(manager))


def _in_torchs_words(text: str, f_locals: dict[str, Any]) -> FailedGuard:
    """The walk cannot ask relational guards, nor see another backend: torch's word stands."""
    gone = _NO_ACCESS.match(text)
    if gone:
        what = gone["subject"]
        return FailedGuard(f"{what} exists", what, "present", gone["why"], "ACCESSOR")
    length = _LENGTH.match(text)
    if length:
        value = f_locals.get(length["what"])
        actual = str(len(value)) if isinstance(value, (dict, list, tuple)) else ""
        subject, size = f"len({length['what']})", length["size"]
        return FailedGuard(f"{subject} == {size}", subject, size, actual, "LENGTH")
    return FailedGuard(
        text, _SUBJECTS.get(text.split(" ", 1)[0], text.split(":", 1)[0]), kind="OTHER"
    )


HOOK = Hook(
    id="recompiles",
    module="torch._dynamo.guards",
    target="get_guard_fail_reason",
    loses="why frames were recompiled",
    after=_record,
    settles=_fold,
)
