"""Small records for tests that need no torch."""

from __future__ import annotations

import itertools

from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import Body, ProcessEnded, ProcessStarted
from compilescope.record.event import Event
from compilescope.record.header import RunHeader
from compilescope.record.run import Run
from compilescope.record.stack import Frame

ROOT = "/home/ada/project"


def frame(line: int = 8, *, file: str = f"{ROOT}/model.py", **fields: object) -> Frame:
    defaults: dict[str, object] = {
        "function": "forward",
        "column": 11,
        "end_column": 23,
        "source": "        if h.mean() > 0:",
    }
    return Frame(file=file, line=line, **{**defaults, **fields})  # type: ignore[arg-type]


def event(body: Body, *, number: int = 0, **fields: object) -> Event:
    defaults: dict[str, object] = {"id": f"0.{number}", "time_ns": number, "pid": 100}
    return Event(body=body, **{**defaults, **fields})  # type: ignore[arg-type]


def run_of(*events: Event, ended: bool = True, **header: object) -> Run:
    """A run of one process around these events."""
    started = ProcessStarted(argv=("model.py",), python="3.11.7", torch="2.13.0", parent_pid=1)
    numbers = itertools.count(1)
    middle = [
        Event(**{n: getattr(e, n) for n in e.__struct_fields__} | {"id": f"0.{next(numbers)}"})
        for e in events
    ]
    frame_events = [event(started, number=-1), *middle]
    if ended:
        frame_events.append(event(ProcessEnded(), number=10**9))
    fields: dict[str, object] = {
        "run": "abc123-model",
        "tool": "0.1.0",
        "root": ROOT,
        "main_pid": 100,
        "exit_status": 0 if ended else None,
        "launcher_pid": 99 if not ended else None,
    }
    return Run(RunHeader(**{**fields, **header}), frame_events, MemoryArtifacts())  # type: ignore[arg-type]
