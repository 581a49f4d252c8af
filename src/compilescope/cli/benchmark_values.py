"""Benchmark runs in JSON, where every key is there, and two of them compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.model.run import Run
    from compilescope.report.blocks import Document
    from compilescope.rules.digest import Digest


def digest_value(seen: Digest) -> Any:
    """As `show --json` prints it. A record leaves out what is as usual; here a reader finds it."""
    if not seen.benchmarks:
        return seen
    rows = [msgspec.structs.asdict(row) for row in seen.benchmarks]
    return {**msgspec.structs.asdict(seen), "benchmarks": rows}


def compared_benchmarks(
    before: Run, after: Run, names: tuple[str, str]
) -> tuple[Any, Document] | None:
    """JSON and document of two benchmark runs; None where neither run is one."""
    from compilescope.rules.benchmarks import is_benchmark

    kinds = [is_benchmark(run) for run in (before, after)]
    if not any(kinds):
        return None
    if not all(kinds):
        other = names[0] if kinds[1] else names[1]
        raise ToolError(f"{other} is not a benchmark run, so it can't be compared with one.")
    from compilescope.report.benchmark_changes import benchmark_comparison_document
    from compilescope.rules.benchmark_changes import compare_benchmarks

    seen = compare_benchmarks(before, after, names)
    value = msgspec.structs.asdict(seen)
    value["benchmarks"] = [_change(change) for change in seen.benchmarks]
    return value, benchmark_comparison_document(seen)


def _change(change: msgspec.Struct) -> dict[str, Any]:
    value = msgspec.structs.asdict(change)
    sides = {side: msgspec.structs.asdict(value[side]) for side in ("before", "after")}
    return {**value, **sides}
