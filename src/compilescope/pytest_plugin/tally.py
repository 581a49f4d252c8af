"""What each test of a run lost, in numbers."""

from __future__ import annotations

import msgspec

from compilescope.model.bodies import CompileTime, GraphCaptured, ProcessStarted
from compilescope.model.event import Event
from compilescope.model.run import Run
from compilescope.rules.eager import eager_frames
from compilescope.rules.failures import failures
from compilescope.rules.recompiles import recompiled_frames
from compilescope.rules.sites import break_sites


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """One test that compiled something, or tried to."""

    test: str | None
    """Its node id; None for what was compiled outside the tests, such as during collection."""
    failures: int
    breaks: int
    eager: int
    recompiles: int
    graphs: int
    compile_s: float

    @property
    def lost(self) -> bool:
        return bool(self.failures or self.breaks or self.eager or self.recompiles)


def tallies(run: Run) -> list[Tally]:
    """Most costly first: failures, then what runs outside graphs, then what is compiled again."""
    groups: dict[tuple[str | None, int], list[Event]] = {}
    parents = {event.pid: body.parent_pid for event, body in run.of(ProcessStarted) if body.forked}
    for event in run.events:
        groups.setdefault((event.test, _origin(event.pid, parents)), []).append(event)
    # Grouped in one pass: a run may have thousands of tests.
    found = [
        _tally(test, Run(run.header, events, run.artifacts)) for (test, _), events in groups.items()
    ]
    # Several workers may run the same test, as under `--dist each`, and lose the same.
    rounded = {(tally.test, *_rank(tally)): tally for tally in reversed(found)}
    told = [tally for tally in rounded.values() if tally.lost or tally.graphs]
    return sorted(told, key=lambda t: (*(-n for n in _rank(t)), -t.compile_s, t.test or ""))


def _origin(pid: int, parents: dict[int, int]) -> int:
    """The process that runs the test: a child that it forked does so on its behalf."""
    seen = {pid}
    while pid in parents and parents[pid] not in seen:
        pid = parents[pid]
        seen.add(pid)
    return pid


def _rank(tally: Tally) -> tuple[int, ...]:
    return tally.failures, tally.breaks + tally.eager, tally.breaks, tally.recompiles, tally.graphs


def _tally(test: str | None, run: Run) -> Tally:
    graphs = sum(body.stage == "dynamo" for _, body in run.of(GraphCaptured))
    return Tally(
        test=test,
        failures=len(failures(run)),
        breaks=len(break_sites(run)),
        eager=len(eager_frames(run)),
        recompiles=sum(frame.count for frame in recompiled_frames(run)),
        graphs=graphs,
        compile_s=sum(body.duration_ns for _, body in run.of(CompileTime)) / 1e9,
    )
