"""How a thread's notes are added up. Times are small numbers here."""

from __future__ import annotations

import pytest

from compilescope.torchapi import totals
from compilescope.torchapi.totals import GraphTotals, RegionTotals, ThreadLog


def graph(*, breaks: bool) -> GraphTotals:
    return GraphTotals("0/0", None, None, breaks)


def read(*notes: tuple[object, int, int], compiles: int = 0) -> ThreadLog:
    log = ThreadLog()
    for note in notes:
        log.log += note
    log.read(compiles)
    assert not log.log
    return log


def times(region: RegionTotals) -> tuple[int, int, int, int]:
    return region.calls, region.total_ns, region.inside_ns, region.entry_ns


def test_one_graph() -> None:
    region, whole = RegionTotals(False), graph(breaks=False)
    read((region, 0, 100), (whole, 110, 150), (None, 0, 155))
    assert times(region) == (1, 55, 40, 15)
    assert (whole.calls, whole.inside_ns, whole.after_ns) == (1, 40, 0)


def test_gaps_go_to_the_last_graph_that_a_break_ended() -> None:
    region, first, callee, last = (
        RegionTotals(False),
        graph(breaks=True),
        graph(breaks=False),
        graph(breaks=False),
    )
    notes = [(region, 0, 100), (first, 110, 120), (callee, 150, 160), (last, 165, 170)]
    read(*notes, (None, 0, 171))
    assert times(region) == (1, 71, 25, 10)
    assert first.after_ns == 30 + 5 + 1
    assert callee.after_ns == last.after_ns == 0
    assert sum(times(region)[2:]) + first.after_ns == 71


def test_one_graph_that_a_break_ended() -> None:
    region, first = RegionTotals(False), graph(breaks=True)
    read((region, 0, 100), (first, 110, 120), (None, 0, 150))
    assert times(region) == (1, 50, 10, 10)
    assert first.after_ns == 30


def test_a_graph_within_a_graph_is_not_counted_twice() -> None:
    region, inner, outer = RegionTotals(False), graph(breaks=False), graph(breaks=False)
    read((region, 0, 100), (inner, 120, 130), (outer, 110, 150), (None, 0, 160))
    assert times(region) == (1, 60, 40, 20)
    assert (inner.calls, outer.calls) == (0, 1)


def test_a_call_that_compiled_is_warm_up() -> None:
    region, whole = RegionTotals(False), graph(breaks=True)
    read((region, 3, 100), (whole, 110, 150), (None, 4, 400))
    assert times(region) == (0, 0, 0, 0)
    assert (region.warmup_calls, region.warmup_ns, whole.calls) == (1, 300, 0)


def test_a_region_within_a_region_belongs_to_it() -> None:
    outer, inner, part = RegionTotals(False), RegionTotals(False), graph(breaks=False)
    notes = [(outer, 0, 100), (inner, 0, 110), (part, 111, 119), (None, 0, 120)]
    read(*notes, (None, 0, 150))
    assert times(outer) == (1, 50, 8, 42)
    assert times(inner) == (0, 0, 0, 0)


def test_a_fullgraph_region_that_was_never_left() -> None:
    failed, region, whole = RegionTotals(True), RegionTotals(False), graph(breaks=False)
    read((failed, 0, 50), (region, 0, 100), (whole, 110, 150), (None, 0, 155))
    assert times(region) == (1, 55, 40, 15)
    assert times(failed) == (0, 0, 0, 0)


def test_a_call_read_in_two_goes() -> None:
    region, first, last = RegionTotals(False), graph(breaks=True), graph(breaks=False)
    log = read((region, 0, 100), (first, 110, 120))
    assert log.outermost is region and times(region) == (0, 0, 0, 0)
    for note in ((last, 150, 160), (None, 0, 165)):
        log.log += note
    log.read(0)
    assert log.outermost is None
    assert times(region) == (1, 65, 20, 10) and first.after_ns == 35


def test_a_very_long_call_is_settled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "_MOST_GRAPHS", 1)
    region, first, last = RegionTotals(False), graph(breaks=True), graph(breaks=False)
    # Something compiled early on; the rest of the call is steady.
    log = read((region, 0, 100), (first, 110, 120), (first, 130, 140), compiles=1)
    assert (region.warmup_ns, region.warmup_calls) == (40, 0)
    for note in ((last, 150, 160), (None, 1, 165)):
        log.log += note
    log.read(1)
    assert times(region) == (1, 25, 10, 0)
    assert first.after_ns == 10 + 5, "what follows is still the first break's doing"


def test_graphs_in_no_region() -> None:
    lone = graph(breaks=True)
    read((lone, 10, 15), (lone, 20, 25), (None, 0, 30))
    assert (lone.calls, lone.inside_ns, lone.after_ns) == (2, 10, 0)


def test_taking_starts_anew() -> None:
    region = RegionTotals(False)
    read((region, 0, 1), (None, 0, 3))
    assert region.take().total_ns == 2
    assert region.take().total_ns == 0
