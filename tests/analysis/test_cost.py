"""Coverage and time lost, from records written by hand."""

from __future__ import annotations

import msgspec
import pytest

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis import cost
from compilescope.knowledge.analysis.cost import coverage, lost_by_site, no_coverage, region_costs
from compilescope.knowledge.findings.breaks import break_sites
from compilescope.record.bodies import (
    GraphBreak,
    GraphCaptured,
    GraphTime,
    HookUnavailable,
    RegionTime,
    ToolFault,
)
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.document import report_document
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

MS = 1_000_000
FILE = f"{ROOT}/model.py"
FORWARD = CodeRef(FILE, 4, "forward")


def rest(line: int) -> CodeRef:
    return CodeRef(FILE, 4, "forward", resumed_at=line)


def broke(line: int, compile_id: str, code: CodeRef = FORWARD, **fields: object) -> Event:
    body = GraphBreak(gb_type=f"type {line}", outcome="resumed", frame=code)
    at = frame(line, source=f"line {line}")
    return event(body, compile_id=compile_id, stack=(at,), **fields)


def graph(compile_id: str, code: CodeRef, *, broken: bool, **fields: object) -> Event:
    body = GraphCaptured(stage="dynamo", frame=code, region=FORWARD, ended_by_break=broken)
    return event(body, compile_id=compile_id, **fields)


def spent(graph: str, after_ms: int, captured: str | None = None, **fields: object) -> Event:
    body = GraphTime(graph, 2, 5 * MS, after_ms * MS, captured=captured)
    return event(body, compile_id=graph, **fields)


def region(total_ms: int, inside_ms: int, entry_ms: int = 0, **fields: object) -> Event:
    body = RegionTime(
        region=FORWARD,
        calls=2,
        total_ns=total_ms * MS,
        inside_ns=inside_ms * MS,
        entry_ns=entry_ms * MS,
        warmup_calls=1,
        warmup_ns=900 * MS,
    )
    return event(body, **fields)


def lost(run: Run) -> dict[int, float]:
    """Line -> milliseconds."""
    sites = break_sites(run)
    by_name = lost_by_site(run, sites)
    return {s.line: by_name[s.fingerprint] for s in sites if s.fingerprint in by_name}


def test_nothing_timed_is_not_zero() -> None:
    run = run_of(broke(8, "0/0"), graph("0/0_1", FORWARD, broken=True))
    assert coverage(run) is None
    assert lost(run) == {}
    assert region_costs(run) == []


def test_warm_up_alone_is_no_measurement() -> None:
    run = run_of(region(0, 0))
    assert coverage(run) is None
    assert region_costs(run)[0].coverage is None
    assert region_costs(run)[0].warmup_ms == 900


def warm(*calls: tuple[str, int]) -> Run:
    """Calls that all compiled something, by function."""
    times = [
        RegionTime(CodeRef(FILE, n, name), 0, 0, 0, warmup_calls=n, warmup_ns=9)
        for name, n in calls
    ]
    return run_of(*(event(body, number=n) for n, body in enumerate(times)))


@pytest.mark.parametrize(
    ("calls", "which"),
    [
        ((("f", 1),), "the only call of f"),
        ((("f", 8),), "all 8 calls of f"),
        ((("f", 5), ("g", 3)), "all 8 calls (5 of f, 3 of g)"),
        (
            (("f", 1), ("g", 2), ("h", 3), ("i", 4), ("j", 5)),
            "all 15 calls (1 of f, 2 of g, 3 of h and 2 more functions)",
        ),
    ],
)
def test_warm_up_alone_says_so(calls: tuple[tuple[str, int], ...], which: str) -> None:
    run = warm(*calls)
    said = f"none: {which} compiled something, so none was timed"
    assert no_coverage(run) == said
    assert said in " ".join(to_text(report_document(Reading(run))).split())


def test_a_figure_needs_no_excuse_and_neither_does_a_run_that_was_not_timed() -> None:
    assert no_coverage(run_of(region(100, 90))) == ""
    assert no_coverage(run_of(graph("0/0", FORWARD, broken=False))) == ""


def test_events_add_up_over_time_and_processes() -> None:
    run = run_of(region(100, 90), region(100, 90, pid=101, number=1), region(200, 100, number=2))
    assert coverage(run) == 70.0
    [cost] = region_costs(run)
    assert (cost.calls, cost.total_ms, cost.inside_ms) == (6, 400, 280)
    assert (cost.function, cost.line, cost.warmup_calls) == ("forward", 4, 3)


def test_each_gap_goes_to_the_break_that_ended_the_graph_before_it() -> None:
    run = run_of(
        broke(8, "0/0"),
        graph("0/0_1", FORWARD, broken=True),
        broke(12, "1/0", rest(8)),
        graph("1/0_1", rest(8), broken=True),
        graph("2/0", rest(12), broken=False),
        region(100, 15, 5),
        spent("0/0_1", 20),
        spent("1/0_1", 60),
        spent("2/0", 0),
    )
    assert lost(run) == {8: 20.0, 12: 60.0}


def test_the_last_break_before_an_attempt_ended_its_graph() -> None:
    """Dynamo traces a frame again for each break it meets; the graph is the last attempt's."""
    run = run_of(
        broke(8, "0/0"),
        broke(6, "0/0_1"),
        graph("0/0_2", FORWARD, broken=True),
        region(100, 5),
        spent("0/0_2", 30),
    )
    assert lost(run) == {6: 30.0}


def test_a_break_without_a_graph_shares_with_the_one_it_resumed_after() -> None:
    run = run_of(
        broke(8, "0/0"),
        graph("0/0_1", FORWARD, broken=True),
        broke(9, "1/0", rest(8)),
        broke(10, "2/0", rest(9)),
        graph("3/0", rest(10), broken=False),
        region(100, 15, 5),
        spent("0/0_1", 30),
        spent("3/0", 0),
    )
    assert lost(run) == {8: 10.0, 9: 10.0, 10: 10.0}


def test_a_frame_given_up_is_charged_with_the_time_before_any_graph() -> None:
    body = GraphBreak(gb_type="in loop", outcome="frame-eager", frame=FORWARD)
    run = run_of(event(body, compile_id="0/0", stack=(frame(8),)), region(100, 0, 100))
    assert lost(run) == {8: 100.0}


def test_a_break_elsewhere_is_not_charged_for_this_region() -> None:
    body = GraphBreak(gb_type="other", frame=CodeRef(FILE, 40, "other"))
    run = run_of(
        event(body, compile_id="0/0", stack=(frame(41, function="other"),)), region(100, 50, 50)
    )
    assert lost(run) == {}


def test_compile_ids_begin_again_after_a_reset() -> None:
    """Times are written long after a compilation: the graph's own event tells its epoch."""
    run = run_of(
        broke(8, "0/0"),
        graph("0/0_1", FORWARD, broken=True),
        broke(12, "0/0", epoch=1),
        graph("0/0_1", FORWARD, broken=True, epoch=1),
        region(100, 15, 5, epoch=1),
        spent("0/0_1", 20, captured="0.2", epoch=1),
        spent("0/0_1", 60, captured="0.4", epoch=1),
    )
    assert lost(run) == {8: 20.0, 12: 60.0}


@pytest.mark.parametrize(
    "trouble",
    [
        ToolFault("timed-graphs", "PlantedFault"),
        HookUnavailable("timed-regions", "torch._dynamo.x", "time"),
    ],
)
def test_a_broken_clock_measures_nothing(trouble: ToolFault | HookUnavailable) -> None:
    run = run_of(event(trouble), region(100, 0, 100))
    assert coverage(run) is None
    assert region_costs(run) == []


def test_breaks_that_share_each_others_time_without_end_are_charged_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many that each share with many would take the square of their number."""
    many = [broke(line, f"{line}/0", rest(line - 1)) for line in range(9, 60)]
    run = run_of(
        broke(8, "0/0"),
        graph("0/0_1", FORWARD, broken=True),
        *many,
        region(100, 15, 5),
        spent("0/0_1", 52),
    )
    assert lost(run) == dict.fromkeys(range(8, 60), 1.0)
    monkeypatch.setattr(cost, "_MOST_STEPS", 50)
    assert lost(run) == {}


@pytest.mark.parametrize("attempt", ["²", "9" * 5000, "٣", "x"])
def test_an_attempt_that_is_no_number(attempt: str) -> None:
    run = run_of(
        broke(8, f"0/0_{attempt}"),
        graph(f"0/0_{attempt}", FORWARD, broken=True),
        region(100, 5),
        spent(f"0/0_{attempt}", 30),
    )
    assert lost(run) == {8: 30.0}


def _by_gpu(timed: Event, **fields: int) -> Event:
    body = msgspec.structs.replace(
        timed.body, **{f"device_{name}_ns": ms * MS for name, ms in fields.items()}
    )
    return msgspec.structs.replace(timed, body=body)


def test_where_a_gpu_was_used_its_clock_counts() -> None:
    """The host ran ahead: it lost much time in the break, the GPU hardly any."""
    events = (
        broke(8, "0/0"),
        graph("0/0_1", FORWARD, broken=True),
        _by_gpu(spent("0/0_1", 30), inside=90, after=2),
        _by_gpu(region(40, 10), total=100, inside=95, entry=3),
    )
    run = run_of(*events)
    assert coverage(run) == 95
    assert lost(run) == {8: 2}
    assert [(each.total_ms, each.clock) for each in region_costs(run)] == [(100, "gpu")]
    assert "by the GPU's clock" in " ".join(to_text(report_document(Reading(run))).split())
    # Calls of another process that were not timed by a GPU: the host's clock has all of them.
    both = run_of(*events, region(40, 10, pid=2))
    assert coverage(both) == 25
    assert lost(both) == {8: 30}
    assert region_costs(both)[0].clock == "host"
