"""Parts of a run."""

from __future__ import annotations

from builders import event, frame, run_of
from compilescope.record.bodies import (
    GraphBreak,
    HookUnavailable,
    ProcessEnded,
    ProcessStarted,
    SourceSeen,
)
from compilescope.record.run import Run

STARTED = ProcessStarted(argv=("b.py",), python="3.11", torch="2.13.0", parent_pid=1)


def two_processes(*, other_ended: bool = True) -> Run:
    run = run_of(
        event(SourceSeen("model.py", "text"), number=1),
        event(HookUnavailable("stances", "torch.x", "stances"), number=2),
        event(GraphBreak("first"), number=3, stack=(frame(),), test="t.py::a"),
        event(GraphBreak("second"), number=4, stack=(frame(9),), test="t.py::b"),
    )
    other = [event(STARTED, number=5, pid=200, id="1.0")]
    if other_ended:
        other.append(event(ProcessEnded(), number=6, pid=200, id="1.1"))
    return Run(run.header, [*run.events, *other], run.artifacts)


def test_a_part_knows_its_process() -> None:
    part = two_processes().narrowed(lambda e: e.test == "t.py::a")
    assert [body.gb_type for _, body in part.of(GraphBreak)] == ["first"]
    assert part.torch_version == "2.13.0"
    assert part.cut_short is None
    assert part.count(SourceSeen) == part.count(HookUnavailable) == 1
    assert {e.pid for e in part.events} == {100}
    assert len({e.id for e in part.events}) == len(part.events)


def test_a_part_is_as_whole_as_its_own_process() -> None:
    run = two_processes(other_ended=False)
    assert run.cut_short is not None
    assert run.narrowed(lambda e: e.pid == 100).cut_short is None
    assert run.narrowed(lambda e: e.pid == 200).cut_short is not None


def test_a_part_without_events_still_knows_the_run() -> None:
    part = two_processes().narrowed(lambda e: False)
    assert part.torch_version == "2.13.0"
    assert part.count(ProcessStarted) == 2
    assert not part.count(GraphBreak)


def test_the_state_of_the_record_stays() -> None:
    whole = run_of()
    damaged = Run(whole.header, whole.events, whole.artifacts, unread=3, live=True)
    part = damaged.narrowed(lambda e: True)
    assert (part.unread, part.torn, part.live) == (3, False, True)
    assert part.events == damaged.events
