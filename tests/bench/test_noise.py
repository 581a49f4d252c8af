"""Figures that are lost in the noise: no figure, no speed-up, and measured longer in between."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")

from benchmark_runs import bench_run, row
from compilescope.knowledge.analysis.benchmarks import benchmarks, without_noise
from compilescope.measure.bench.measurement import Track, benchmark, too_noisy
from compilescope.measure.bench.protocol import Spec
from compilescope.record.benchmark import too_wide
from compilescope.report.benchmarks import benchmarks_document
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

QUIET = [1.0, 1.01, 1.02, 1.0, 1.01, 1.02]
# Three processes as a loaded machine measured them.
WILD = [[476.0, 470.0, 480.0], [2.0, 3.0, 2.5], [900.0, 26000.0, 950.0]]
CALM = [[10.0 * each for each in QUIET]] * 3


def track(backend: str, rows: list[list[float]], planned: int = 3) -> Track:
    spec = Spec(model="net", backend=backend, runs=len(rows[0]))
    firsts = [1.0] * len(rows)
    return Track(spec, planned=planned * len(rows[0]), rows=rows, firsts=firsts)


@pytest.mark.parametrize(
    ("value", "interval", "wide"),
    [
        (476.0, (0.8, 26168.0), True),
        (10.0, (5.0, 15.0), False),
        (10.0, (4.9, 15.0), True),
        (10.0, None, False),
        (None, (1.0, 2.0), False),
        (10.0, (1.0, float("nan")), True),
    ],
)
def test_an_interval_wider_than_the_figure(
    value: float | None, interval: tuple[float, float] | None, wide: bool
) -> None:
    assert too_wide(value, interval) is wide


@pytest.mark.parametrize("noisy", ["eager", "inductor"])
def test_no_speed_up_is_told_of_noise(noisy: str) -> None:
    group = [track(name, WILD if name == noisy else CALM) for name in ("eager", "inductor")]
    assert too_noisy(group)
    base, other = without_noise([benchmark(group[0], None), benchmark(group[1], group[0])])
    assert other.speedup is None and other.speedup_ci is None and other.too_noisy
    loud = base if noisy == "eager" else other
    assert loud.latency_ms is not None and loud.noisy_latency
    assert any("Too noisy to tell" in note for note in loud.notes)


def test_calm_figures_are_told_and_measured_no_longer() -> None:
    group = [track("eager", CALM), track("inductor", [[5.0 * each for each in QUIET]] * 3)]
    assert not too_noisy(group)
    [_, other] = without_noise([benchmark(group[0], None), benchmark(group[1], group[0])])
    assert other.speedup == pytest.approx(2.0) and not other.too_noisy


def test_more_processes_than_planned_are_told() -> None:
    notes = benchmark(track("eager", [*CALM, *CALM]), None).notes
    assert any(note.startswith("Measured longer, in 6 processes instead of 3") for note in notes)


def test_the_table_says_too_noisy_where_a_figure_would_stand() -> None:
    wild = {"latency_ci_ms": (0.8, 26168.0)}
    run = bench_run(
        row("bert", "eager", 476.0, **wild), row("bert", "inductor", 400.0, eager=476.0)
    )
    text = to_text(benchmarks_document(Reading(run)))
    flat = " ".join(text.split())
    assert "inductor: too noisy to tell whether it is faster than eager mode on 1 model." in flat
    assert "eager: too noisy to tell, between [0.8, 26168.0] ms" in flat
    assert "476.0" not in text and "1.19x" not in text
    assert [each.speedup for each in benchmarks(run)] == [None, None]
