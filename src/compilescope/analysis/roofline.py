"""The kernels of a step against what the machine can do: operations a second, by those a byte.

Kernels that do the same with as much data from the same lines are one: a model has many layers.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from compilescope.analysis.step_kernels import StepKernel, is_rate, roof_of
from compilescope.profiles.kernel_rows import Bound, KernelRow, Roof, beats
from compilescope.profiles.step_profile import StepProfile


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
