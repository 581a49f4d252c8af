"""Compiled versions that were of no use but once: made for one call, and never asked for again."""

from __future__ import annotations

from compilescope.knowledge.findings.compile_ids import CompileKey, Process, compile_key, process_of
from compilescope.record.bodies import CompileTime, Recompile, VersionsSeen
from compilescope.record.run import Run
from compilescope.record.storms import compilation_number, frame_number

_Call = tuple[int | None, int | None]
"""A region and the number of its call."""
_FrameKey = tuple[Process, int, str]


def versions_used_once(run: Run) -> set[CompileKey]:
    """Of a version nobody can tell it of, it is not said."""
    if not run.count(VersionsSeen):
        return set()
    calls: dict[CompileKey, _Call] = {}
    for event, body in run.of(CompileTime):
        key = compile_key(event, event.compile_id)
        if key is not None and body.phase == "forward":
            calls[key] = body.region, body.call
    again: dict[_FrameKey, list[CompileKey]] = {}
    for event, _ in run.of(Recompile):
        key = compile_key(event, event.compile_id)
        if key is not None:
            again.setdefault(_frame_key(key), []).append(key)
    found: set[CompileKey] = set()
    for event, seen in run.of(VersionsSeen):
        process = process_of(event)
        order = [(process, event.epoch, each.compile_id) for each in seen.versions]
        for place, (key, each) in enumerate(zip(order, seen.versions, strict=True)):
            misses = again.get(_frame_key(key), [])[: seen.misses]
            later = [miss for miss in misses if _number(miss) > _number(key)]
            if (
                later
                # Each miss asks every version. Who failed more often was in front of another.
                and each.fails <= len(later)
                and not any(_number(other) > _number(key) for other in order[place + 1 :])
                and _is_next_call(calls.get(key), calls.get(later[0]))
            ):
                found.add(key)
    return found


def _frame_key(key: CompileKey) -> _FrameKey:
    process, epoch, compile_id = key
    return process, epoch, frame_number(compile_id)


def _number(key: CompileKey) -> int:
    return compilation_number(key[2])


def _is_next_call(made: _Call | None, missed: _Call | None) -> bool:
    """Did the next call of the region ask for another version already?"""
    if made is None or missed is None or None in (*made, *missed):
        return False
    (region, first), (other, second) = made, missed
    return region == other and first is not None and second is not None and second - first <= 1
