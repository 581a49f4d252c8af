"""The JSON of `compilescope bench`, as docs/json.md describes it."""

from __future__ import annotations

from typing import Any

import msgspec

from compilescope.model.benchmarked import Benchmark, Machine

_KEYS = (
    "model",
    "backend",
    "mode",
    "device",
    "dtype",
    "batch",
    "small",
    "compile_mode",
    "parameters",
    "compile_seconds",
    "warm_compile_seconds",
    "latency_ms",
    "latency_mean_ms",
    "latency_std_ms",
    "latency_p90_ms",
    "latency_ci_ms",
    "throughput",
    "peak_bytes",
    "graphs",
    "breaks",
    "recompiles",
    "violations",
    "constraints",
    "kerneldiff",
    "speedup",
    "speedup_ci",
    "runs_ms",
    "calls",
    "outliers",
    "error",
    "notes",
)


def bench_json(run: str, machine: Machine, results: list[Benchmark]) -> dict[str, Any]:
    """Every key is there, also where its figure is null."""
    fields = {field: getattr(machine, field) for field in machine.__struct_fields__}
    rows = [{key: getattr(result, key) for key in _KEYS} for result in results]
    found: dict[str, Any] = msgspec.to_builtins({"run": run, "machine": fields, "results": rows})
    return found
