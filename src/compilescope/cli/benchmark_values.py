"""Benchmark runs in JSON, where every key is there, and two of them compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from compilescope.rules.benchmark_changes import BenchmarkComparison
    from compilescope.rules.digest import Digest


def digest_value(seen: Digest) -> Any:
    """As `show --json` prints it. A record leaves out what is as usual; here a reader finds it."""
    if not seen.benchmarks:
        return seen
    rows = [msgspec.structs.asdict(row) for row in seen.benchmarks]
    return {**msgspec.structs.asdict(seen), "benchmarks": rows}


def comparison_value(seen: BenchmarkComparison) -> dict[str, Any]:
    """Two benchmark runs compared."""
    value = msgspec.structs.asdict(seen)
    value["benchmarks"] = [_change(change) for change in seen.benchmarks]
    return value


def _change(change: msgspec.Struct) -> dict[str, Any]:
    value = msgspec.structs.asdict(change)
    sides = {side: msgspec.structs.asdict(value[side]) for side in ("before", "after")}
    return {**value, **sides}
