"""As much of a timeline is drawn as can be seen, and what is left out is counted."""

from __future__ import annotations

from functools import cache

from builders import ROOT, event, run_of
from compilescope.record.bodies import CacheAccess, CompilePhases, CompileTime, GraphBreak, Phase
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report import blocks
from compilescope.report.section import Reading
from compilescope.report.sections.timeline import SECTION

_MS = 1_000_000


def run_with(compilations: int, phases: int, breaks: int = 0) -> Run:
    events = []
    for number in range(compilations):
        begin = number * 1000 * _MS
        code = CodeRef(f"{ROOT}/model.py", number + 1, "forward")
        inner = [Phase("p", begin + n * 2 * _MS, _MS, 1) for n in range(phases)]
        timed = CompilePhases((Phase("dynamo", begin, 900 * _MS), *inner))
        told = CompileTime(duration_ns=800 * _MS, frame=code)
        name = f"{number}/0"
        for n in range(breaks):
            events.append(event(CacheAccess("fx_graph", "hit"), time_ns=begin + n, compile_id=name))
        events += [
            event(GraphBreak("x", frame=code), time_ns=begin + 5 * _MS, compile_id=name),
            event(told, time_ns=begin + 850 * _MS, compile_id=name),
            event(timed, time_ns=begin + 901 * _MS, compile_id=name),
        ]
    return run_of(*events)


def drawn(run: Run) -> tuple[blocks.Timeline, str]:
    found = SECTION.build(Reading(run, full=True))
    assert isinstance(found[0], blocks.Timeline)
    notes = [b for b in found if isinstance(b, blocks.Paragraph)]
    return found[0], " ".join(blocks.plain(note.words) for note in notes)


@cache
def huge() -> tuple[blocks.Timeline, str]:
    return drawn(run_with(1500, 40))


def test_an_empty_run_draws_nothing() -> None:
    assert SECTION.build(Reading(run_of(), full=True)) == []


def test_a_small_run_is_drawn_whole() -> None:
    timeline, notes = drawn(run_with(2, 10))
    (lane,) = timeline.lanes
    kinds = [bar.kind for bar in lane.bars]
    assert kinds.count("frame") == 2
    assert kinds.count("phase") == 20
    assert kinds.count("break") == 2
    assert "left out" not in notes
    # torch's name for the whole of a compilation is not drawn over it once more.
    assert "dynamo" not in [bar.label for bar in lane.bars]
    assert {bar.depth for bar in lane.bars if bar.kind == "phase"} == {1}


def test_a_huge_run_is_bounded_and_says_so() -> None:
    timeline, notes = huge()
    bars = [bar for lane in timeline.lanes for bar in lane.bars]
    assert len(bars) <= 2100
    assert any(bar.kind == "frame" for bar in bars)
    assert "left out" in notes
    assert "`compilescope report --format trace` has them all." in notes


def test_breaks_are_kept_before_cache_answers() -> None:
    timeline, notes = drawn(run_with(10, 1, breaks=100))
    kinds = [bar.kind for lane in timeline.lanes for bar in lane.bars]
    assert kinds.count("break") == 10
    assert kinds.count("cache") < 1000
    assert "left out" in notes


def test_no_bar_without_the_one_around_it() -> None:
    timeline, _ = huge()
    for lane in timeline.lanes:
        depth = -1
        for bar in lane.bars:
            assert bar.depth <= depth + 1
            depth = bar.depth if bar.duration_ns else depth


def test_a_record_without_phases_says_so() -> None:
    told = CompileTime(duration_ns=5, frame=CodeRef(f"{ROOT}/model.py", 1, "forward"))
    _, notes = drawn(run_of(event(told, time_ns=10, compile_id="0/0")))
    assert "not for their phases" in notes


def test_the_backends_work_has_a_colour_of_its_own() -> None:
    code = CodeRef(f"{ROOT}/model.py", 1, "forward")
    phases = CompilePhases(
        (
            Phase("dynamo", 0, 100),
            Phase("bytecode_tracing", 5, 10, 1),
            Phase("backend_compile", 20, 50, 1),
            Phase("lowering", 30, 10, 2),
            Phase("build_guards", 80, 10, 1),
        )
    )
    backward = CompilePhases((Phase("entire_backward_compile", 200, 50),))
    run = run_of(
        event(CompileTime(duration_ns=90, frame=code), time_ns=95, compile_id="0/0"),
        event(phases, time_ns=101, compile_id="0/0"),
        event(backward, time_ns=250, compile_id="0/0"),
        event(CompileTime(duration_ns=60, phase="backward"), time_ns=255, compile_id="0/0"),
    )
    timeline, _ = drawn(run)
    kinds = {bar.label: bar.kind for lane in timeline.lanes for bar in lane.bars}
    assert kinds == {
        "0/0 forward": "frame",
        "bytecode_tracing": "phase",
        "backend_compile": "backend",
        "lowering": "backend",
        "build_guards": "phase",
        "0/0 forward, backward": "frame",
        "entire_backward_compile": "backend",
    }
