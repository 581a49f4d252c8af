"""The kernels of a profiled step with the lines of source that each computes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

import msgspec

from compilescope.analysis.stages.collect import KERNELS, StagedGraph, staged_graphs
from compilescope.analysis.stages.kernel_traffic import kernel_traffic
from compilescope.analysis.stages.line_links import Family, ReadStage
from compilescope.analysis.stages.reader import StageReader
from compilescope.model.bodies import KernelEmitted
from compilescope.model.run import Run
from compilescope.profiles.calls import UserLine
from compilescope.profiles.kernel_rows import Bound, KernelRow, Roof, bound_of
from compilescope.profiles.step_profile import StepProfile
from compilescope.source.spots import Sources

_EXTERN = re.compile(r"\b((?:extern_kernels|torch\.ops|aten)\.[\w.]+)\(")
_MOST_LINES = 3
"""Of the user, for one kernel. Chosen: what a cell of the table has room for."""
_LEAST_RATE = 1e-60
"""Chosen: far below any device, its inverse far above; products of two such are still floats."""


class StepKernel(msgspec.Struct, frozen=True):
    """A row of the table."""

    row: KernelRow
    bound: Bound
    lines: list[UserLine]
    """The user's, where the kernel comes from."""
    bytes: float | None
    """A step; None where it is not known."""


def kernels_by_profile(run: Run, profiles: list[StepProfile]) -> list[list[StepKernel]]:
    """The kernels of each profile, the most expensive first. The run's code is read once for all
    of them, if any has some."""
    code = _GeneratedCode(run) if any(profile.kernels for profile in profiles) else None
    return [_kernels(profile, code) if code is not None else [] for profile in profiles]


def _kernels(profile: StepProfile, code: _GeneratedCode) -> list[StepKernel]:
    roof = roof_of(profile)
    precision, on_gpu = profile.told.matmul_precision, bool(profile.told.device)
    found = []
    for row in profile.kernels:
        moved = row.bytes or code.traffic.get(row.name, 0.0) * row.calls
        counted = msgspec.structs.replace(row, bytes=moved)
        bound = bound_of(counted, roof, precision, on_gpu)
        lines = code.lines_of(row) or ([row.at] if row.at is not None else [])
        found.append(StepKernel(row, bound, lines, moved or None))
    return found


def roof_of(profile: StepProfile) -> Roof | None:
    """What the device of a profile can do; None where that was not measured."""
    try:
        roof = msgspec.json.decode(profile.told.roof, type=Roof) if profile.told.roof else None
    except msgspec.DecodeError:
        return None
    rates = (roof.bytes_per_second, *roof.flops_per_second.values()) if roof is not None else ()
    return roof if all(map(is_rate, rates)) else None


def is_rate(number: float) -> bool:
    """A record may come from anywhere: what is divided and drawn is far from the ends of floats."""
    return _LEAST_RATE < number < 1 / _LEAST_RATE


class _GeneratedCode:
    """What Inductor's code of a run says of its kernels."""

    def __init__(self, run: Run) -> None:
        self.traffic: dict[str, float] = {}
        """Bytes of a call."""
        self._lines: dict[str, Counter[UserLine]] = defaultdict(Counter)
        self._called: dict[UserLine, list[UserLine]] = {}
        """A line of that code -> the user's."""
        reader = StageReader(run, Sources(run))
        for graph in staged_graphs(run):
            if graph.of(KERNELS):
                self._read(graph, reader)

    def lines_of(self, row: KernelRow) -> list[UserLine]:
        if row.code is not None:
            return self._called.get(row.code, [])
        return [line for line, _ in self._lines[row.name].most_common(_MOST_LINES)]

    def _read(self, graph: StagedGraph, reader: StageReader) -> None:
        family = reader.family(graph, graph.stages)
        of_number: dict[int, list[UserLine]] = defaultdict(list)
        for (file, line), numbers in family.places.items():
            for number in numbers:
                of_number[number].append(UserLine(file, line))
        for read in family.stages:
            if read.code is not None:
                self._read_code(read, family, of_number, reader)

    def _read_code(
        self,
        read: ReadStage,
        family: Family,
        of_number: dict[int, list[UserLine]],
        reader: StageReader,
    ) -> None:
        assert read.code is not None
        text = reader.text(read.stage)
        called: dict[str, list[list[UserLine]]] = defaultdict(list)
        uses: Counter[str] = Counter()
        for block, numbers in zip(read.code.blocks, read.blocks, strict=True):
            own = list(dict.fromkeys(at for n in numbers for at in of_number.get(n, ())))
            self._lines[block.kernel].update(own)
            called[block.kernel].append(own[:_MOST_LINES])
        for kernel, moved in kernel_traffic(text).items():
            uses[kernel] = len(re.findall(rf"\b{kernel}(?:\.run)?\((?!')", text)) or 1
            self.traffic[kernel] = moved / uses[kernel]
        body = read.stage.event.body
        file = body.file if isinstance(body, KernelEmitted) else ""
        self._place_calls(text, file, called)

    def _place_calls(self, text: str, file: str, called: dict[str, list[list[UserLine]]]) -> None:
        """Calls of libraries by the line of the code that calls them."""
        turn: Counter[str] = Counter()
        for number, line in enumerate(text.splitlines(), 1):
            extern = _EXTERN.search(line)
            if extern is None or line.lstrip().startswith("#") or extern[1] not in called:
                continue
            nth = turn[extern[1]]
            turn[extern[1]] += 1
            if nth < len(called[extern[1]]):
                self._called[UserLine(file, number)] = called[extern[1]][nth]


def kernels_json(kernels: list[StepKernel]) -> list[dict[str, Any]]:
    return [
        {
            "name": kernel.row.name,
            "work": kernel.row.work,
            "calls": kernel.row.calls,
            "ms": kernel.row.us / 1e3,
            "share": kernel.row.share,
            "bytes": kernel.bytes,
            "flops": kernel.row.flops or None,
            "bound": kernel.bound.by or None,
            "roof_share": kernel.bound.share,
            "lines": [{"file": at.file, "line": at.line} for at in kernel.lines],
        }
        for kernel in kernels
    ]
