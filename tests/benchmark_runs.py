"""Benchmark runs made without torch: three models on four backends, with every kind of trouble."""

from __future__ import annotations

import random
import statistics
from typing import Any

from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.benchmark import Benchmark, Machine
from compilescope.record.bodies import Body, TensorDiff, Violation
from compilescope.record.event import Event
from compilescope.record.header import RunHeader
from compilescope.record.run import Run

MACHINE = Machine(
    name="ada",
    cpu="AMD EPYC 7B13",
    cores=2,
    threads=2,
    memory_bytes=8 * 2**30,
    python="3.11.7",
    torch="2.13.0+cpu",
    packages={"transformers": "5.1.0"},
)
BATCHES = {"bert": 8, "resnet": 32, "mamba": 4}


def timed(
    ms: float, *, spread: float = 0.01, processes: int = 2, runs: int = 10, seed: int = 0
) -> tuple[tuple[float, ...], ...]:
    chance = random.Random(f"{ms} {seed}")
    return tuple(
        tuple(round(chance.gauss(ms, ms * spread), 4) for _ in range(runs))
        for _ in range(processes)
    )


def row(
    model: str, backend: str, ms: float, *, eager: float | None = None, **fields: Any
) -> Benchmark:
    """As it is measured; with eager mode's median it has a speed-up."""
    seed = fields.pop("seed", 0)
    spread = fields.pop("spread", 0.01)
    runs_ms = timed(ms, seed=seed, spread=spread)
    every = sorted(run for process in runs_ms for run in process)
    median = statistics.median(every)
    values: dict[str, Any] = {
        "batch": BATCHES.get(model, 1),
        "parameters": 178_000_000,
        "runs_ms": runs_ms,
        "latency_ms": median,
        "latency_mean_ms": statistics.mean(every),
        "latency_std_ms": statistics.stdev(every),
        "latency_p90_ms": every[int(len(every) * 0.9)],
        "latency_ci_ms": (median * (1 - spread), median * (1 + spread)),
        "throughput": 1000 * BATCHES.get(model, 1) / median,
        "peak_bytes": 712_000_000,
    }
    if backend != "eager":
        values |= {"graphs": 1, "breaks": 0, "recompiles": 0, "compile_seconds": 12.31}
        values |= {"warm_compile_seconds": 3.14, "kerneldiff": "pass"}
        if eager is not None:
            speedup = eager / median
            values |= {
                "speedup": speedup,
                "speedup_ci": (speedup * (1 - 2 * spread), speedup * (1 + 2 * spread)),
            }
    return Benchmark(model=model, backend=backend, **{**values, **fields})


def bench_run(*bodies: Body, machine: Machine | None = MACHINE, **header: Any) -> Run:
    every = [*([machine] if machine is not None else []), *bodies]
    events = [Event(id=f"0.{n}", time_ns=n, pid=100, body=body) for n, body in enumerate(every)]
    fields: dict[str, Any] = {
        "run": "abc123-bench",
        "tool": "0.1.0",
        "command": ("compilescope", "bench", "--all"),
        "root": "/home/ada/project",
        "ended_ns": 10**9,
    }
    return Run(RunHeader(**{**fields, **header}), events, MemoryArtifacts())


def benchmark_run() -> Run:
    """Faster, slower, no different; wrong, failed, interrupted, without figures."""
    return bench_run(
        row("bert", "eager", 812.4),
        row("bert", "inductor", 571.2, eager=812.4, violations=3, constraints="npu-a", outliers=2),
        row("bert", "aot_eager", 809.1, eager=812.4),
        row("bert", "compilescope_mini", 1904.0, eager=812.4, kerneldiff="unknown"),
        row("resnet", "eager", 48.2),
        row("resnet", "inductor", 33.1, eager=48.2, kerneldiff="fail"),
        row("resnet", "aot_eager", 47.9, eager=48.2, breaks=2, graphs=3, recompiles=1),
        Benchmark(
            model="resnet",
            backend="compilescope_mini",
            batch=32,
            error="`aten.convolution` is not supported by this backend.",
        ),
        row("mamba", "eager", 0.8411),
        row("mamba", "inductor", 0.92, eager=0.8411),
        Benchmark(
            model="mamba",
            backend="aot_eager",
            batch=4,
            runs_ms=((0.85, 0.86),),
            latency_ms=0.855,
            notes=("Interrupted after 2 of 10 runs.",),
        ),
        Benchmark(model="mamba", backend="compilescope_mini", batch=4),
        Violation("dtype", "npu-a", "aten.sin.default", "float64", "float32", model="bert"),
        TensorDiff("output[0]", "fail", "too far", "resnet", test="inductor"),
        TensorDiff("output[0]", "pass", "", "bert", test="inductor", metrics={"max_abs": 0.0}),
    )
