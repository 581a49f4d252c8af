"""Benchmarks over time: real changes, intervals, and no line from one machine to another."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from benchmark_runs import bench_run, row
from compilescope.knowledge.analysis.benchmark_changes import benchmark_history
from dashboard_history import OTHER, measured
from dashboard_server import Served, serving


def test_the_newest_figures_and_how_they_went(history: Served) -> None:
    page = unescape(history.client.get("/benchmarks").text)
    assert "inductor on AMD EPYC 7B13, 2 cores: latency, ms (lower is better)" in page
    assert "inductor on AMD EPYC 7B13, 2 cores: speed-up over eager mode" in page
    assert re.search(r"-2\d\.\d % \[-2\d\.\d, -2\d\.\d\].*?faster", page, re.S)
    assert "no real change" in page
    assert 'href="/runs/000003-bench"' in page
    assert "Measured on different machines, which are never compared with each other." in page
    assert "first on this machine" in page
    assert page.count('<figure class="trend') == 3  # A single point on a machine has no line.


def test_they_can_be_narrowed(history: Served) -> None:
    page = history.client.get("/benchmarks", params={"model": "resnet"}).text
    assert ">resnet</span>" in page and ">bert</span>" not in page
    page = history.client.get("/benchmarks", params={"backend": "inductor"}).text
    assert "inductor: latency" in page and "eager on" not in page
    for query in ({"model": "nothing"}, {"backend": "<script>"}):
        answer = history.client.get("/benchmarks", params=query)
        assert answer.status_code == 400
        assert "<script>" not in answer.text.replace("<script src", "")


def test_without_any_the_page_says_how_to_measure(tmp_path: Path) -> None:
    with serving(tmp_path / ".compilescope") as served:
        page = served.client.get("/benchmarks").text
        assert "No benchmarks yet" in page and "compilescope bench" in page
        assert 'href="/start/bench"' in page
        for path, words in (
            ("/sweeps", "No sweeps yet"),
            ("/numbers", "No comparisons yet"),
            ("/compare", "Nothing to compare yet"),
        ):
            assert words in served.client.get(path).text


def test_series_by_machine_and_compile_mode() -> None:
    runs = [measured(500.0), measured(400.0), bench_run(row("bert", "eager", 9.0), machine=OTHER)]
    runs.append(bench_run(row("bert", "inductor", 9.0, compile_mode="max-autotune")))
    for number, run in enumerate(runs):
        _dated(run, number)
    found = {
        (s.setup.model, s.backend, s.compile_mode, s.hardware and s.hardware[0]): s
        for s in benchmark_history(list(reversed(runs)))
    }
    faster = found["bert", "inductor", "", "AMD EPYC 7B13"]
    assert [point.run for point in faster.points] == ["run-0", "run-1"]
    assert faster.change is not None and faster.change.verdict == "faster"
    assert found["bert", "eager", "", "Apple M3"].change is None
    assert found["bert", "inductor", "max-autotune", "AMD EPYC 7B13"].change is None


def test_what_was_measured_on_an_unknown_machine_is_not_compared() -> None:
    runs = [bench_run(row("bert", "eager", ms), machine=None) for ms in (9.0, 5.0)]
    for number, run in enumerate(runs):
        _dated(run, number)
    (series,) = benchmark_history(runs)
    assert len(series.points) == 2 and series.change is None


def _dated(run, number: int) -> None:
    import msgspec

    run.header = msgspec.structs.replace(run.header, run=f"run-{number}", started_ns=number + 1)
