"""What an adapter keeps of its graphs while they are compiled and run; a report is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from compilescope.backends.islands.coverage import Sizes, describe_island, host_ops
from compilescope.backends.islands.records import (
    ON_DEVICE,
    AdapterReport,
    GraphIslands,
    HostOp,
    IslandStatus,
    WrongnessCheck,
)
from compilescope.backends.islands.support import NodeRefusal
from compilescope.model.body import GraphStage, Verdict

_WORST: dict[Verdict, int] = {"pass": 0, "unknown": 1, "fail": 2}


@dataclass
class IslandEntry:
    """One island and what became of it."""

    names: Sequence[str]
    status: IslandStatus = "compiled"
    reason: str = ""
    warnings: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass
class GraphEntry:
    """One graph that an adapter was given, and its islands."""

    stage: GraphStage
    compile_id: str | None
    sizes: Sizes
    host: dict[str, NodeRefusal]
    cut_by: Literal["torch", "levels"]
    host_runs: str
    islands: list[IslandEntry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _behind: tuple[HostOp, ...] | None = None

    def record(self) -> GraphIslands:
        sizes = self.sizes
        device = [n for e in self.islands if e.status in ON_DEVICE for n in e.names]
        partial = [n for e in self.islands if e.status == "partial" for n in e.names]
        others = {n: number for number, e in enumerate(self.islands) for n in e.names}
        if self._behind is None:
            self._behind = host_ops(sizes, self.host)
        return GraphIslands(
            stage=self.stage,
            compile_id=self.compile_id,
            ops=len(sizes.ops),
            device_ops=len(sizes.counted(device)),
            partial_ops=len(sizes.counted(partial)),
            flops=sizes.flops(sizes.ops),
            device_flops=sizes.flops(device),
            made=sizes.made(sizes.ops),
            device_made=sizes.made(device),
            islands=tuple(
                msgspec.structs.replace(
                    describe_island(sizes, number, entry.names, others, entry.status),
                    reason=entry.reason,
                    warnings=entry.warnings,
                    metadata=entry.metadata,
                )
                for number, entry in enumerate(self.islands)
            ),
            host=self._behind,
            cut_by=self.cut_by,
            host_runs=self.host_runs,
            notes=tuple(dict.fromkeys(self.notes)),
        )


class Ledger:
    """What one adapter has compiled and run so far."""

    def __init__(self) -> None:
        self.graphs: list[GraphEntry] = []
        self._checks: dict[tuple[str, str, int | None, int], WrongnessCheck] = {}

    def note(self, check: WrongnessCheck, graph: int = -1, *, settles: bool = False) -> None:
        """The worst that was seen of one kind at one island is kept.

        `settles`: a pass is an answer to what could not be told before.
        """
        key = (check.name, check.stage, check.island, graph)
        before = self._checks.get(key)
        if before is None:
            self._checks[key] = check
            return
        rank = _WORST | ({"unknown": -1} if settles else {})
        worst = check if rank[check.verdict] > rank[before.verdict] else before
        self._checks[key] = msgspec.structs.replace(worst, calls=before.calls + check.calls)

    @property
    def checks(self) -> tuple[WrongnessCheck, ...]:
        return tuple(self._checks.values())

    def report(self, device: str, adapter: str) -> AdapterReport:
        return AdapterReport(
            device=device,
            adapter=adapter,
            graphs=tuple(entry.record() for entry in self.graphs),
            checks=self.checks,
        )
