"""How calls are added up, with a clock that the test turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch

pytest.importorskip("torch")

from compilescope.instrument.torchapi.times.region_times import Timing  # noqa: E402
from compilescope.instrument.torchapi.times.time_totals import GraphTotals, RegionTotals  # noqa: E402


class Sink:
    def __init__(self) -> None:
        self.bodies: list[Any] = []

    def emit(self, body: Any, stack: Any = (), compile_id: str | None = None) -> str:
        self.bodies.append(body)
        return ""

    def artifact(self, text: str, kind: str) -> str:
        return ""

    def fault(self, where: str, error: BaseException) -> None:
        raise error

    def new_epoch(self) -> None: ...


class Bench:
    """Regions and graphs under a clock that stands still unless told."""

    def __init__(self) -> None:
        self.now = 100
        self.sink = Sink()
        self.timing = Timing(self.sink, now=lambda: self.now)
        self.entered: list[Callable[[], None]] = []

    def region(self, *, fullgraph: bool = False) -> tuple[RegionTotals, Callable[[], Any]]:
        totals = RegionTotals(fullgraph)
        totals.named = True
        self.timing._regions.append(totals)
        return totals, self.timing._region_clock(totals)

    def graph(self, takes: int = 0, *, breaks: bool = False, inner: Any = None) -> Any:
        totals = GraphTotals("0/0", None, None, breaks)
        self.timing._graphs.append(totals)

        def run() -> None:
            if inner is not None:
                inner()
            self.wait(takes)

        call = self.timing._graph_clock(run, totals)
        call.totals = totals
        return call

    def wait(self, time: int) -> None:
        self.now += time


def times(region: RegionTotals) -> tuple[int, int, int, int]:
    return region.calls, region.total_ns, region.inside_ns, region.outside.ns


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_one_graph(bench: Bench) -> None:
    region, enter = bench.region()
    whole = bench.graph(40)
    leave = enter()
    bench.wait(10)
    whole()
    bench.wait(5)
    leave()
    assert times(region) == (1, 55, 40, 15)
    assert (whole.totals.calls, whole.totals.inside_ns, whole.totals.outside.ns) == (1, 40, 0)


def test_gaps_go_to_the_last_graph_that_a_break_ended(bench: Bench) -> None:
    region, enter = bench.region()
    first, callee, last = bench.graph(10, breaks=True), bench.graph(10), bench.graph(5)
    leave = enter()
    bench.wait(10)
    first()
    bench.wait(30)
    callee()
    bench.wait(5)
    last()
    bench.wait(1)
    leave()
    assert times(region) == (1, 71, 25, 10)
    assert first.totals.outside.ns == 30 + 5 + 1
    assert callee.totals.outside.ns == last.totals.outside.ns == 0


def test_a_graph_within_a_graph_is_not_counted_twice(bench: Bench) -> None:
    region, enter = bench.region()
    inner = bench.graph(10)
    outer = bench.graph(30, inner=inner)
    leave = enter()
    outer()
    bench.wait(20)
    leave()
    assert times(region) == (1, 60, 40, 20)
    assert (inner.totals.calls, outer.totals.calls) == (0, 1)


def test_a_call_that_compiles_is_warm_up_from_its_last_graph_on(bench: Bench) -> None:
    region, enter = bench.region()
    first, last = bench.graph(10, breaks=True), bench.graph(10)
    leave = enter()
    bench.wait(1)
    first()
    bench.wait(20)
    bench.timing.note_compilation()
    bench.wait(300)
    last()
    leave()
    assert times(region) == (0, 11, 10, 1)
    assert (region.warmup_calls, region.warmup_ns) == (1, 330)
    assert (first.totals.calls, first.totals.outside.ns, last.totals.calls) == (1, 0, 0)
    leave = enter()
    last()
    leave()
    assert times(region) == (1, 21, 20, 1)


def test_a_compilation_within_a_graph_is_warm_up(bench: Bench) -> None:
    region, enter = bench.region()
    lazy = bench.graph(100, inner=bench.timing.note_compilation)
    leave = enter()
    lazy()
    leave()
    assert times(region) == (0, 0, 0, 0)
    assert (region.warmup_calls, region.warmup_ns, lazy.totals.calls) == (1, 100, 0)


def test_a_region_within_a_region_belongs_to_it(bench: Bench) -> None:
    outer, enter = bench.region()
    inner, enter_inner = bench.region()
    part = bench.graph(8)
    leave = enter()
    leave_inner = enter_inner()
    part()
    leave_inner()
    bench.wait(42)
    leave()
    assert times(outer) == (1, 50, 8, 42)
    assert times(inner) == (0, 0, 0, 0)


def test_a_fullgraph_region_that_was_never_left(bench: Bench) -> None:
    failed, enter_failed = bench.region(fullgraph=True)
    region, enter = bench.region()
    whole = bench.graph(40)
    enter_failed()
    bench.wait(7)
    leave = enter()
    whole()
    leave()
    assert times(region) == (1, 40, 40, 0)
    assert times(failed) == (0, 0, 0, 0)


def test_a_region_entered_from_within_a_fullgraph_graph(bench: Bench) -> None:
    outer, enter = bench.region(fullgraph=True)
    inner, enter_inner = bench.region()

    def operator() -> None:
        enter_inner()()

    whole = bench.graph(40, inner=operator)
    leave = enter()
    whole()
    leave()
    assert times(outer) == (1, 40, 40, 0)
    assert times(inner) == (0, 0, 0, 0)


def test_graphs_in_no_region(bench: Bench) -> None:
    lone = bench.graph(5, breaks=True)
    lone()
    bench.wait(50)
    lone()
    assert (lone.totals.calls, lone.totals.inside_ns, lone.totals.outside.ns) == (2, 10, 0)


def test_a_graph_that_raises_has_run(bench: Bench) -> None:
    region, enter = bench.region()

    def fail() -> None:
        raise ValueError

    failing = bench.graph(5, inner=fail)
    leave = enter()
    with pytest.raises(ValueError):
        failing()
    leave()
    assert times(region)[0] == 1 and failing.totals.calls == 1
    assert not bench.timing._local.call.busy


def test_writing_starts_anew(bench: Bench) -> None:
    _, enter = bench.region()
    whole = bench.graph(4)
    for _ in range(2):
        leave = enter()
        whole()
        leave()
        bench.timing.write()
    bench.timing.write()
    assert [body.calls for body in bench.sink.bodies] == [1, 1, 1, 1]


def test_a_long_run_writes_on_the_way(bench: Bench) -> None:
    _, enter = bench.region()
    for _ in range(4):
        leave = enter()
        bench.wait(1_500_000_000)
        leave()
    assert [body.calls for body in bench.sink.bodies] == [2, 2]


class Device:
    """A GPU behind the host: what is put into its queue passes when it has worked so far."""

    def __init__(self) -> None:
        self.time = 0
        self.reached = 0
        self.blocked = False
        self.given_back: list[int] = []

    def now(self) -> int | None:
        return None if self.blocked else self.time

    def has_passed(self, moment: int) -> bool:
        return moment <= self.reached

    def wait(self, moment: int) -> None:
        self.reached = max(self.reached, moment)

    def between_ns(self, before: int, after: int) -> int:
        return after - before

    def give_back(self, moment: int) -> None:
        self.given_back.append(moment)


class DeviceBench(Bench):
    def __init__(self) -> None:
        super().__init__()
        self.device = Device()
        self.timing._moments = lambda: self.device
        self.timing._look_for_device()

    def works(self, time: int) -> Callable[[], None]:
        """Launches so much work, which takes the host no time."""

        def launch() -> None:
            self.device.time += time

        return launch

    def call(self, enter: Callable[[], Any], *parts: Callable[[], Any]) -> None:
        leave = enter()
        for part in parts:
            part()
        leave()

    def written(self, *, last: bool = False) -> tuple[Any, list[Any]]:
        """The region, and its graphs."""
        self.sink.bodies.clear()
        self.timing.write(last=last)
        return self.sink.bodies[0], self.sink.bodies[1:]


def test_a_device_has_times_of_its_own() -> None:
    bench = DeviceBench()
    _, enter = bench.region()
    first = bench.graph(1, breaks=True, inner=bench.works(100))
    second = bench.graph(1, inner=bench.works(40))
    bench.call(enter, bench.works(5), first, bench.works(7), second, bench.works(2))
    region, graphs = bench.written(last=True)
    assert (region.total_ns, region.inside_ns) == (2, 2)
    assert (region.device_total_ns, region.device_inside_ns) == (154, 140)
    assert region.device_entry_ns == 5
    assert [graph.device_inside_ns for graph in graphs] == [100, 40]
    assert [graph.device_after_ns for graph in graphs] == [9, 0]


def test_nobody_waits_for_a_device_before_the_end() -> None:
    bench = DeviceBench()
    _, enter = bench.region()
    graph = bench.graph(1, inner=bench.works(100))
    bench.call(enter, graph)
    bench.call(enter, graph)
    region, _ = bench.written()
    assert (region.calls, region.device_total_ns) == (2, 0)
    bench.device.reached = 100
    region, _ = bench.written()
    assert (region.calls, region.device_total_ns) == (0, 100)
    region, _ = bench.written(last=True)
    assert region.device_total_ns == 100


def test_a_device_is_not_asked_while_something_compiles_or_a_cuda_graph_is_recorded() -> None:
    bench = DeviceBench()
    _, enter = bench.region()
    graph = bench.graph(1, inner=bench.works(100))
    bench.call(enter, bench.timing.note_compilation, graph)
    bench.device.blocked = True
    bench.call(enter, graph)
    bench.device.blocked = False
    bench.call(enter, graph)
    region, _ = bench.written(last=True)
    assert (region.calls, region.warmup_calls) == (2, 1)
    assert region.device_total_ns == 100


def test_a_device_that_fails_harms_nothing() -> None:
    bench = DeviceBench()
    _, enter = bench.region()
    graph = bench.graph(1, inner=bench.works(100))
    bench.call(enter, graph)

    def fails(*given: object) -> Any:
        raise RuntimeError("CUDA error")

    bench.device.wait = bench.device.now = fails  # type: ignore[method-assign]
    bench.call(enter, graph)
    region, _ = bench.written(last=True)
    assert (region.calls, region.device_total_ns) == (2, 0)


def test_without_a_device_there_are_no_such_times(bench: Bench) -> None:
    _, enter = bench.region()
    leave = enter()
    bench.graph(5)()
    leave()
    bench.timing.close()
    assert [body.device_inside_ns for body in bench.sink.bodies] == [None, None]
