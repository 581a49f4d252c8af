"""What the calls of a program's regions take: a warm one, all compiling, the most memory; or how
many operators one of them runs, eagerly, or in graphs.

A region is what the original compiles, whatever a version compiles of it: so versions that compile
other things are weighed by the same calls.
"""

from __future__ import annotations

import atexit
import json
import resource
import statistics
import time
from pathlib import Path
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode

from compilescope.change.repair.trials.child.kept_outcomes import claim
from compilescope.instrument.torchapi.compilation.fresh import CompilationClock
from compilescope.instrument.torchapi.regions import CompiledRegion, Regions
from compilescope.instrument.torchapi.repros.graph_writer import BackendCall, watched_backends

Counted = Literal["", "all", "graphs"]
"""All operators, run eagerly; those in graphs; or none, to time it undisturbed."""


def begin(given: dict[str, Any]) -> None:
    """torch has just been imported, and nothing of the program's has been compiled."""
    Weigher(Path(given["folder"]), given["counting"]).begin()


class Weigher:
    """Stands around every outermost call of a region."""

    def __init__(self, folder: Path, counting: Counted) -> None:
        self._folder = folder
        self._counting = counting
        self._in_graphs = 0
        self._regions = Regions(self._on_call)
        self._clock = CompilationClock()
        self._warm: dict[CompiledRegion, list[float]] = {}
        self._operators: dict[CompiledRegion, int] = {}
        self._claimed: bool | None = None

    def begin(self) -> None:
        self._clock.install()
        self._regions.install()
        if self._counting == "graphs":
            self._watching = watched_backends(self._counted)
            self._watching.__enter__()  # For good.
        atexit.register(self._write)

    def _on_call(self, region: CompiledRegion, args: Any, kwargs: Any) -> Any:
        if self._claimed is None:
            self._claimed = claim(self._folder)
        if self._counting == "all":
            counting = _OperatorCount()
            with self._regions.calling("eager"), counting:
                result = region.eager(*args, **kwargs)
            self._ran(region, counting.count)
            return result
        known = self._in_graphs
        before = self._clock.count
        _synchronize()
        begun = time.perf_counter()
        with self._regions.calling("compiled"):
            result = region.compiled(*args, **kwargs)
        _synchronize()
        if self._clock.count == before:
            self._warm.setdefault(region, []).append(time.perf_counter() - begun)
        self._ran(region, self._in_graphs - known)
        return result

    def _ran(self, region: CompiledRegion, operators: int) -> None:
        self._operators[region] = max(self._operators.get(region, 0), operators)

    def _counted(self, call: BackendCall) -> Any:
        """A graph that says at each call how many operators it runs."""
        compiled = call.compile()
        nodes = [node for node in call.module.graph.nodes if node.op.startswith("call_")]
        operators = sum(_gives_tensors(node.meta.get("example_value")) for node in nodes)

        def counting(*args: Any) -> Any:
            self._in_graphs += operators
            return compiled(*args)

        return counting

    def _write(self) -> None:
        if not self._claimed:
            return
        warm = [statistics.median(each) for each in self._warm.values()]
        told = {
            "operators": sum(self._operators.values()),
            "warm_s": sum(warm) if warm else None,
            "compile_s": self._clock.seconds,
            "memory_bytes": _peak(),
        }
        (self._folder / "weighed.json").write_text(json.dumps(told))


class _OperatorCount(TorchFunctionMode):  # type: ignore[misc]
    """Counts what gives tensors, as Dynamo would put it into a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if _gives_tensors(result) and func.__name__ not in ("__get__", "__set__"):
            self.count += 1
        return result


def _gives_tensors(value: Any) -> bool:
    several = isinstance(value, (tuple, list)) and any(map(torch.is_tensor, value))
    return several or torch.is_tensor(value)


def _synchronize() -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _peak() -> int:
    """On a GPU what torch took of its memory; else the most that this process ever had."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_reserved())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
