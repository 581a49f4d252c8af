"""What `compilescope bench` prints: the list of models, and JSON (see docs/reference/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from compilescope.apps.cli.options import print_json
from compilescope.base.errors import ToolError
from compilescope.record.benchmark import Benchmark, Machine

if TYPE_CHECKING:
    from compilescope.measure.bench.model import Model


def all_models() -> list[Model]:
    try:
        from compilescope.measure.bench import model
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ToolError(
            "Benchmarks need torch, which is not installed in this Python.",
            hint='pip install "compilescope[torch,bench]"',
        ) from None
    return model.all_models()


def print_models(*, as_json: bool) -> int:
    every = all_models()
    from compilescope.measure.bench.model import unavailable

    models = [(model, unavailable(model)) for model in every]
    if as_json:
        print_json(
            {
                "models": [
                    {
                        "name": model.name,
                        "title": model.title,
                        "about": model.about,
                        "parameters": model.parameters,
                        "batch": model.batch,
                        "small_batch": model.small_batch,
                        "needs": model.needs,
                        "unavailable": reason,
                    }
                    for model, reason in models
                ]
            }
        )
        return 0
    widest = max((len(model.name) for model, _ in models), default=0)
    for model, reason in models:
        size = f"{model.parameters / 1e6:,.0f}M" if model.parameters else "?"
        print(f"{model.name:<{widest}}  {size:>6}  {model.about}")
        if reason:
            print(f"{'':<{widest}}  {'':>6}  Not available here: {reason}")
    print("\nYour own: --model file.py:build, a function that returns (model, args).")
    return 0


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
    "too_noisy",
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
