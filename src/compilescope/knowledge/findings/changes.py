"""What is different in a recompile from the earlier compilation that comes nearest to it."""

from __future__ import annotations

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.findings.compile_ids import CompileKey, compile_key
from compilescope.record.bodies import CacheEntryMiss, FailedGuard, Recompile
from compilescope.record.event import Event
from compilescope.record.storms import MOST_WALKED, compilation_number

_INDEX = late(r"\['?\d+'?\]")
_NUMBER = late(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?$")
_SIZE = late(r"\.(?:size|stride)\(\)\[\d+\]$")


def is_size(subject: str) -> bool:
    """Or a stride."""
    return _SIZE.search(subject) is not None


def is_number(text: str) -> bool:
    """A Python number, as torch prints it; not NaN or infinity, which Dynamo keeps constant."""
    return _NUMBER.match(text) is not None


def folded(subject: str) -> str:
    """Without the numbers of layers and instances; a dimension is no such number."""
    size = _SIZE.search(subject)
    holder = subject[: size.start()] if size else subject
    return _INDEX.sub("[*]", holder) + (size[0] if size else "")


def is_mode(subject: str, kind: str) -> bool:
    """A program sets it itself: each of its states is wanted, be it for a single call."""
    return kind == "GLOBAL_STATE" or subject.endswith(".training")


class GuardChange(msgspec.Struct, frozen=True):
    """What is different from the version that comes nearest."""

    event: Event
    body: Recompile
    failed: list[FailedGuard]
    """What explains the others first."""
    nearest: CompileKey | None
    """That version."""


def nearest_change(event: Event, body: Recompile) -> GuardChange | None:
    """From the earlier compilation that comes nearest: the one with the fewest values that changed,
    and rather a size or a number than a value that is there or not; of several the one that was
    used last."""
    if not body.entries:
        return None
    if compilation_number(event.compile_id) > MOST_WALKED:
        # Of the other entries one guard alone is known.
        nearest = body.entries[0]
    else:
        named = [entry for entry in body.entries if entry.failed] or body.entries
        nearest = min(named, key=_distance)
    failed = sorted(nearest.failed, key=_precedence)
    key = compile_key(event, nearest.compile_id)
    return GuardChange(event, body, failed, key) if failed else None


def _distance(entry: CacheEntryMiss) -> tuple[int, int]:
    """How many values are there or not, and how many changed. An entry whose object is gone would
    fit but for that. A cache that grows comes nearest to a shorter one, not to the first call,
    which had none: that was compiled once, and its length changes each time."""
    if any(each.kind == "WEAKREF" for each in entry.failed):
        return 0, 0
    there = {folded(each.subject) for each in entry.failed if _is_there_or_not(each)}
    return len(there), len({folded(each.subject) for each in entry.failed})


def _is_there_or_not(failed: FailedGuard) -> bool:
    return "None" in (failed.expected, failed.actual) or failed.kind == "ACCESSOR"


def _precedence(failed: FailedGuard) -> int:
    """A mode explains what follows from it, a value that is there or not explains its sizes, and
    a parameter, whose size stays a constant, those of what it is multiplied with."""
    subject = failed.subject
    if failed.kind == "WEAKREF":
        return -1
    if is_mode(subject, failed.kind):
        return 1 if failed.kind == "GLOBAL_STATE" else 0
    if _is_there_or_not(failed):
        return 2
    if subject.endswith((".dtype", ".device")) or "._parameters[" in subject:
        return 3
    return 4 if _SIZE.search(subject) else 5
