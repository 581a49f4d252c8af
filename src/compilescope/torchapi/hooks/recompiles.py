"""Recompiles: for every earlier compilation, every guard that failed and the value that broke it.

This point is passed once for each cache entry; `compile_times` ends the frame and joins them.
"""

from __future__ import annotations

import re
from typing import Any

from compilescope.model.bodies import CacheEntryMiss, FailedGuard
from compilescope.model.guard_text import readable, without_comment
from compilescope.torchapi.guards.checks import failed_guards
from compilescope.torchapi.hook import Call, Hook, Watch

_NO_ACCESS = re.compile(r"^\w+GuardAccessor: (?P<why>.+) on (?P<subject>\S+)$")
_LENGTH = re.compile(r"^len\((?P<what>.+)\) != (?P<size>\d+)$")
_SUBJECTS = {"BACKEND_MATCH": "the backend", "Duplicate": "aliasing of arguments"}


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
        failed = [_in_torchs_words(readable(without_comment(words)), call["f_locals"])]
    miss = CacheEntryMiss(str(call["compile_id"]), tuple(failed), words)
    watch.frame.misses.append((call["code"], miss))


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
)
