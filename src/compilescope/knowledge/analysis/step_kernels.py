"""The kernels of a profiled step: the lines of source that each computes, the memory that it moves,
and where it stands under the roof of the machine.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import prod
from typing import Any

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.stages.line_links import Family, ReadStage
from compilescope.knowledge.analysis.stages.reader import StageReader
from compilescope.knowledge.analysis.stages.staged_graphs import KERNELS, StagedGraph, staged_graphs
from compilescope.knowledge.profiles.calls import UserLine
from compilescope.knowledge.profiles.kernel_rows import (
    Bound,
    KernelRow,
    Roof,
    beats,
    bound_of,
    is_rate,
    read_roof,
)
from compilescope.knowledge.profiles.step_profile import StepProfile
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import KernelEmitted
from compilescope.record.run import Run

_SIZE = r"\(([\d,\s]*)\)"
_CHECKED = late(rf"\s*assert_size_stride\((\w+), {_SIZE}")
_MADE = late(rf"\s*(\w+) = empty_strided\w*\({_SIZE}")
_RENAMED = late(r"\s*(\w+) = (\w+)(?:;|$)")
_VIEWED = late(rf"\s*(\w+) = reinterpret_tensor\(\w+, {_SIZE}")
_CALL = late(r"\s*((?:triton|cpp)_\w+)(?:\.run)?\((.*)\)\s*$")
_TRITON = late(r"(\w+) = async_compile\.triton\(")
_CPP = late(r"(\w+) = async_compile\.cpp_pybinding\(")
_SIGNATURE = late(r"'signature': \{([^{}]*)\}")
_POINTER = late(r"'(\w+)': '\*(\w+)'")
_CPP_POINTER = late(r"(?:const )?\b(\w+)\s*\*\s*(\w+)")
_VIEW = late(rf"reinterpret_tensor\(\w+, {_SIZE}")
_BYTES = {
    "fp64": 8, "i64": 8, "u64": 8, "fp32": 4, "i32": 4, "u32": 4, "fp16": 2, "bf16": 2, "i16": 2,
    "i8": 1, "u8": 1, "i1": 1, "fp8e4nv": 1, "fp8e5": 1,
    "double": 8, "int64_t": 8, "float": 4, "int32_t": 4, "half": 2, "bfloat16": 2, "int16_t": 2,
    "int8_t": 1, "uint8_t": 1, "bool": 1,
}  # fmt: skip
"""As Triton and C++ call the dtypes."""

_Pointers = list[tuple[str, int]]
_EXTERN = re.compile(r"(?<![\w.])((?:extern_kernels|torch\.ops|aten)\.[\w.]+)\(")
_MOST_LINES = 3
"""Of the user, for one kernel. Chosen: what a cell of the table has room for."""


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
    return read_roof(profile.told.roof)


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


# What each generated kernel reads and writes, from Inductor's output code: sizes of its tensors,
# times the bytes of an element. As torch's own estimate it counts each tensor once, and one that
# is changed in place twice; of a tensor that is only partly read it is too much.


def kernel_traffic(text: str) -> dict[str, float]:
    """Kernel -> bytes of all its calls in this code. Kernels with sizes that only the run knows
    are left out."""
    pointers = _pointers(text)
    sizes: dict[str, int] = {}
    found: dict[str, float] = {}
    unknown: set[str] = set()
    for line in text.splitlines():
        for pattern in (_CHECKED, _MADE, _VIEWED):
            made = pattern.match(line)
            if made is not None:
                sizes[made[1]] = _numel(made[2])
        renamed = _RENAMED.match(line)
        if renamed is not None and renamed[2] in sizes:
            sizes[renamed[1]] = sizes[renamed[2]]
        call = _CALL.match(line)
        if call is None or call[1] not in pointers:
            continue
        moved = _moved(_arguments(call[2]), pointers[call[1]], sizes)
        if moved is None:
            unknown.add(call[1])
        else:
            found[call[1]] = found.get(call[1], 0.0) + moved
    return {kernel: moved for kernel, moved in found.items() if kernel not in unknown}


def _moved(arguments: list[str], pointers: _Pointers, sizes: dict[str, int]) -> float | None:
    total = 0.0
    for argument, (name, item) in zip(arguments, pointers, strict=False):
        view = _VIEW.match(argument)
        numel = _numel(view[1]) if view is not None else sizes.get(argument)
        if numel is None:
            return None
        total += numel * item * (2 if name.startswith("in_out") else 1)
    return total


def _pointers(text: str) -> dict[str, _Pointers]:
    """Kernel -> its arguments that are tensors, which come first, with the bytes of an element."""
    found: dict[str, _Pointers] = {}
    kernel = ""
    for line in text.splitlines():
        triton, cpp = _TRITON.match(line), _CPP.match(line)
        if triton is not None:
            kernel = triton[1]
        elif cpp is not None:
            kernel = cpp[1]
            found[kernel] = []
        elif line.startswith("{"):
            kernel = ""
        elif kernel in found:
            named = ((m[2], m[1]) for m in _CPP_POINTER.finditer(line))
            found[kernel] += [(name, _BYTES.get(dtype, 0)) for name, dtype in named]
        elif kernel and (signature := _SIGNATURE.search(line)) is not None:
            named = ((m[1], m[2]) for m in _POINTER.finditer(signature[1]))
            found[kernel] = [(name, _BYTES.get(dtype, 0)) for name, dtype in named]
            kernel = ""
    return found


def _arguments(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    found, depth, at = [], 0, 0
    for index, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            found.append(text[at:index].strip())
            at = index + 1
    return [*found, text[at:].strip()]


def _numel(size: str) -> int:
    return prod(int(number) for number in size.replace(",", " ").split())


# The kernels of a step against what the machine can do: operations a second, by those a byte.
#
# Kernels that do the same with as much data from the same lines are one: a model has many layers.


class RoofPoint(msgspec.Struct, frozen=True):
    """A kernel whose bytes, operations and limit are known."""

    kernel: StepKernel
    flops_per_byte: float
    flops_per_second: float
    ceiling: str
    """The dtype whose products limit it."""


def merged(kernels: list[StepKernel]) -> list[StepKernel]:
    """The most expensive first."""
    groups: dict[object, list[StepKernel]] = defaultdict(list)
    for kernel in kernels:
        row = kernel.row
        per_call = (round(row.flops / row.calls), round((kernel.bytes or 0) / row.calls))
        key = (row.name, row.work, row.dtypes, tuple(kernel.lines), per_call, kernel.bound.by)
        groups[key].append(kernel)
    return sorted(map(_together, groups.values()), key=lambda kernel: -kernel.row.us)


def roof_points(kernels: list[StepKernel], roof: Roof, matmul_precision: str) -> list[RoofPoint]:
    """Of those of which all that is known, in their order."""
    points = []
    for kernel in kernels:
        row = kernel.row
        if kernel.bytes and row.flops and row.us:
            ceiling = roof.ceiling(row.dtypes, matmul_precision)
            intensity, rate = row.flops / kernel.bytes, row.flops / row.us * 1e6
            if ceiling and is_rate(intensity) and is_rate(rate):
                points.append(RoofPoint(kernel, intensity, rate, ceiling))
    return points


def faster_than_roof(profile: StepProfile) -> list[KernelRow]:
    """Kernels that show that the roof was measured too low."""
    roof = roof_of(profile)
    if roof is None:
        return []
    return [row for row in profile.kernels if beats(row, roof, profile.told.matmul_precision)]


def _together(kernels: list[StepKernel]) -> StepKernel:
    first = kernels[0]
    if len(kernels) == 1:
        return first
    rows = [kernel.row for kernel in kernels]
    us = sum(row.us for row in rows)
    row = msgspec.structs.replace(
        first.row,
        calls=sum(row.calls for row in rows),
        us=us,
        share=sum(row.share for row in rows),
        bytes=sum(row.bytes for row in rows),
        flops=sum(row.flops for row in rows),
    )
    shares = [(kernel.bound.share or 0.0) * kernel.row.us for kernel in kernels]
    share = sum(shares) / us if us and first.bound.share is not None else None
    moved = sum(kernel.bytes or 0.0 for kernel in kernels)
    return StepKernel(row, Bound(first.bound.by, share), first.lines, moved or None)
