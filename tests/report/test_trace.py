"""The trace is what the timeline says, and Perfetto's own engine reads it so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.timeline.lanes import timeline
from compilescope.record.bodies import (
    CacheAccess,
    CacheEntryMiss,
    CompilePhases,
    CompileTime,
    FailedGuard,
    GraphBreak,
    Phase,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.trace import to_trace
from report.trace_processor import ask

CODE = CodeRef(f"{ROOT}/model.py", 6, "forward")
BEGIN = 1_794_721_732_843_153_117
HOSTILE = '<script>alert("x")</script>\x00\x1b[31m\u202e \udc80 {"ph":"X"}'
ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


def told(body: Any, offset_ns: int, **fields: Any) -> Event:
    return event(body, time_ns=BEGIN + offset_ns, thread=140_222_333_444_555, **fields)


def process(pid: int, rank: int, *, late: int = 0) -> list[Event]:
    """A function compiled in two attempts, and compiled again."""
    fields: dict[str, Any] = {"pid": pid, "rank": rank}
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3")
    phases = (
        Phase("dynamo", BEGIN + late, 1_000_900),
        Phase("entire_frame_compile", BEGIN + late + 100, 1_000_799, 1),
        Phase("compile_attempt_0", BEGIN + late + 200, 300_000, 2),
        Phase("compile_attempt_1", BEGIN + late + 300_201, 700_000, 2),
        Phase("backend_compile", BEGIN + late + 300_203, 500, 3, detail="cache hit"),
    )
    done = CompileTime(duration_ns=1_000_000, frame=CODE, restarts=("Data-dependent",))
    again = CompileTime(duration_ns=900_000, frame=CODE)
    broken = GraphBreak("Data-dependent", "GB0170", frame=CODE)
    miss = Recompile(CODE, (CacheEntryMiss("0/0", (guard,)),))
    return [
        told(broken, late + 300_100, compile_id="0/0", stack=(frame(),), **fields),
        told(CacheAccess("fx_graph", "hit"), late + 300_500, compile_id="0/0_1", **fields),
        told(done, late + 1_000_500, compile_id="0/0_1", stack=(frame(),), **fields),
        told(CompilePhases(phases), late + 1_001_000, compile_id="0/0", **fields),
        told(miss, late + 3_000_000, compile_id="0/1", **fields),
        told(again, late + 3_000_100, compile_id="0/1", **fields),
    ]


def two_ranks() -> Run:
    return run_of(*process(100, 0), *process(101, 1, late=77_777))


def read(run: Run) -> list[dict[str, Any]]:
    return json.loads(to_trace(run))["traceEvents"]


def bars(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in events if one["ph"] == "X"]


def test_an_empty_run_is_an_empty_trace() -> None:
    assert read(run_of()) == []


def test_nothing_is_left_out() -> None:
    run = two_ranks()
    events = read(run)
    lanes = timeline(run).lanes
    assert len(bars(events)) == sum(len(lane.bars) for lane in lanes)
    moments = [one for one in events if one["ph"] == "i"]
    assert len(moments) == sum(len(lane.marks) for lane in lanes)
    assert {one["cat"] for one in moments} == {"break", "cache", "recompile"}


def test_bars_are_nested_in_whole_microseconds() -> None:
    for pid in (100, 101):
        open_ends: list[int] = []
        for one in bars(read(two_ranks())):
            if one["pid"] != pid:
                continue
            assert isinstance(one["ts"], int) and one["ts"] >= 0 and one["dur"] >= 0
            while open_ends and open_ends[-1] <= one["ts"]:
                open_ends.pop()
            end = one["ts"] + one["dur"]
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


def test_arguments_tell_what_it_was() -> None:
    events = read(two_ranks())
    compilation = next(one for one in events if one.get("cat") == "compilation")
    assert compilation["name"] == "0/0 forward"
    assert compilation["args"] == {
        "compile id": "0/0",
        "function": "forward",
        "place": "model.py:6",
        "direction": "forward",
        "compiled": True,
        "traced again because": "Data-dependent",
    }
    broken = next(one for one in events if one.get("cat") == "break")
    assert broken["args"]["place"] == "model.py:8"
    again = next(one for one in events if one.get("cat") == "recompile")
    assert again["args"]["reason"] == "x.size()[0]: expected 2, got 3"


def test_processes_and_threads_have_names() -> None:
    names = [one["args"]["name"] for one in read(two_ranks()) if one["name"] == "process_name"]
    assert names == ["rank 0: model.py (pid 100)", "rank 1: program (pid 101)"]
    # A thread's own number is more than a JSON number of a browser holds.
    assert all(one["tid"] < 1000 for one in read(two_ranks()))


def test_pids_of_two_machines_stay_apart() -> None:
    run = two_ranks()
    there = [
        Event(
            **{n: getattr(e, n) for n in e.__struct_fields__}
            | {"id": f"1.{number}", "pid": 100, "rank": 1}
        )
        for number, e in enumerate(process(100, 1))
    ]
    run.events.extend(there)
    assert len({one["pid"] for one in bars(read(run))}) == 3


def hostile(**fields: Any) -> list[Event]:
    code = CodeRef(f"{ROOT}/{HOSTILE}.py", 6, HOSTILE)
    stack = (frame(source=HOSTILE),)
    return [
        told(GraphBreak(HOSTILE, frame=code), 5, compile_id="0/0", stack=stack, **fields),
        told(CompileTime(duration_ns=5, frame=code), 10, compile_id="0/0", **fields),
    ]


def test_what_a_program_wrote_stays_text() -> None:
    (bar,) = bars(read(run_of(*hostile())))
    assert HOSTILE.replace("\udc80", "\\x80") in bar["name"]


def test_perfetto_reads_it(tmp_path: Path) -> None:
    """With a third process in it, whose every name is hostile."""
    run = run_of(*two_ranks().events, *hostile(pid=102, rank=2))
    errors, slices, names, arguments = ask(
        to_trace(run),
        [
            ERRORS,
            "select process.pid, slice.name, slice.ts, slice.dur, slice.depth, slice.category"
            " from slice join thread_track on slice.track_id = thread_track.id"
            " join thread using (utid) join process using (upid) order by pid, ts, depth",
            "select name from process where name is not null order by name",
            "select distinct string_value from args where key = 'args.compile id' order by 1",
        ],
        tmp_path,
    )
    assert errors == []
    wanted = [
        (one["pid"], one["name"], one["ts"] * 1000, one.get("dur", 0) * 1000, one["cat"])
        for one in read(run)
        if one["ph"] in "Xi" and one["pid"] != 102
    ]
    found = [(pid, name, ts, dur, cat) for pid, name, ts, dur, _, cat in slices if pid != 102]
    assert sorted(found) == sorted(wanted)
    assert len(slices) == len(found) + 2, "the hostile ones are there"
    depths = {(pid, name, ts): depth for pid, name, ts, _, depth, _ in slices}
    begin = timeline(run).start_ns
    for lane in timeline(run).lanes:
        for bar in lane.bars:
            if bar.kind == "phase":
                at = (bar.start_ns - begin) // 1000 * 1000
                assert depths[lane.pid, bar.name, at] == bar.depth
    assert [name for (name,) in names][:2] == [
        "rank 0: model.py (pid 100)", "rank 1: program (pid 101)",
    ]  # fmt: skip
    assert {"0/0", "0/1"} <= {value for (value,) in arguments}


@pytest.mark.slow
@pytest.mark.torch
def test_perfetto_reads_a_real_program(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import torch

    import compilescope

    def step(x: Any) -> Any:
        y = x * 2
        torch._dynamo.graph_break()
        return (y * y).sum()

    torch._dynamo.reset()
    with compilescope.capture() as seen:
        torch.compile(step, backend="aot_eager")(torch.ones(3, requires_grad=True)).backward()
    torch._dynamo.reset()
    errors, counted, deepest = ask(
        to_trace(seen.run),
        [ERRORS, "select count(*) from slice", "select max(depth) from slice"],
        tmp_path,
    )
    lanes = timeline(seen.run).lanes
    assert errors == []
    assert counted == [(sum(len(lane.bars) + len(lane.marks) for lane in lanes),)]
    assert deepest[0][0] >= max(bar.depth for lane in lanes for bar in lane.bars)
