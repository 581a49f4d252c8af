"""What a backend checks and how: from arguments, a device, and the environment, in this order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from compilescope.backends.device_files import find_device
from compilescope.backends.operator_names import (
    unknown_in_device,
    unknown_in_file,
    unknown_names,
    warn_of,
)
from compilescope.base.errors import ToolError
from compilescope.base.settings import MockSettings, read_mock_settings
from compilescope.knowledge.rules.constraints.memory import MemoryConstraint
from compilescope.knowledge.rules.constraints.operators import UnsupportedOpsConstraint
from compilescope.knowledge.rules.constraints.shape import ShapeConstraint
from compilescope.knowledge.rules.hardware.checks import check_graph, constraints_of
from compilescope.knowledge.rules.hardware.constraint import Constraint, default_device
from compilescope.record.byte_counts import parse_bytes
from compilescope.record.device import ALL_DIMS, AlignedDims, Alignment, Device
from compilescope.record.graph import Graph

UNNAMED = "mock"
"""What a device is called that has no name."""


Dims = Sequence[int] | Literal["all", "last"]


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What is checked, and what becomes of a violation."""

    constraints: tuple[Constraint, ...]
    """All of them."""
    device: Device | None = None
    """Arguments have changed it where they say otherwise."""
    extra: tuple[Constraint, ...] = ()
    """Those of `constraints` that are no part of the device."""
    strict: bool = True
    repro: bool | Path = True
    """Whether to write a repro, or the folder to write it in."""
    repro_timeout_s: float = 60.0
    is_default: bool = False
    """Nobody said what to check: the device is the generic one."""

    @property
    def name(self) -> str:
        return self.device.name if self.device is not None else UNNAMED


def configure(
    *,
    device: str | os.PathLike[str] | Device | None = None,
    strict: bool | None = None,
    constraints: Iterable[Constraint] | None = None,
    alignment: int | None = None,
    alignment_dims: Dims | None = None,
    max_memory: int | str | None = None,
    max_peak_memory: int | str | None = None,
    repro: bool | str | os.PathLike[str] = True,
    repro_timeout_s: float = 60.0,
) -> Configuration:
    """An argument wins over the device, and a device over the environment.

    Without a device, constraints are all that is checked, and without those it is the generic
    device. The environment has a say in both cases.
    """
    environment = read_mock_settings()
    given = _listed(constraints)
    _check_alignment(alignment)
    limits = _Limits(
        alignment,
        _dims(alignment_dims),
        _bytes(max_memory, "max_memory"),
        _bytes(max_peak_memory, "max_peak_memory"),
    )
    chip = _device(device)
    if chip is None:
        limits = limits.completed(environment, given)
        chip = default_device() if constraints is None else None
    if chip is not None:
        chip = limits.changed(chip)
        made, extra = constraints_of(chip), given
    else:
        made, extra = [], (*limits.constraints(), *given)
    if not 0 < repro_timeout_s <= 3600:
        raise ToolError(
            f"repro_timeout_s is {repro_timeout_s!r}; it must be seconds, at most an hour."
        )
    raising = True if environment.strict is None else environment.strict
    return Configuration(
        constraints=(*made, *extra),
        device=chip,
        extra=extra,
        strict=raising if strict is None else bool(strict),
        repro=repro if isinstance(repro, bool) else Path(repro),
        repro_timeout_s=repro_timeout_s,
        is_default=device is None and constraints is None,
    )


@dataclass(frozen=True)
class _Limits:
    """What arguments and the environment say beside a device."""

    alignment: int | None
    dims: AlignedDims | None
    tensor_bytes: int | None
    peak_bytes: int | None

    def completed(self, environment: MockSettings, given: tuple[Constraint, ...]) -> _Limits:
        """The environment gives way to an argument, and to a constraint of the same kind."""
        alignment, tensor_bytes, peak_bytes = self.alignment, self.tensor_bytes, self.peak_bytes
        if alignment is None and not any(isinstance(each, ShapeConstraint) for each in given):
            alignment = environment.alignment
        if not any(isinstance(each, MemoryConstraint) for each in given):
            if tensor_bytes is None:
                tensor_bytes = _bytes(environment.max_memory or None, "MOCK_MAX_MEMORY")
            if peak_bytes is None:
                peak_bytes = _bytes(environment.max_peak_memory or None, "MOCK_MAX_PEAK_MEMORY")
        dims = self.dims
        if dims is None:
            dims = _parse_dims(environment.alignment_dims, "MOCK_ALIGNMENT_DIMS")
        return _Limits(alignment, dims, tensor_bytes, peak_bytes)

    def changed(self, device: Device) -> Device:
        replace = msgspec.structs.replace
        if self.alignment is not None:
            rule = Alignment(multiple=self.alignment, dims=self.dims or ALL_DIMS)
            rules = (rule,) if self.alignment > 1 else ()
            device = replace(device, shapes=replace(device.shapes, alignment=rules))
        memory = device.memory
        if self.tensor_bytes is not None:
            memory = replace(memory, tensor_bytes=self.tensor_bytes)
        if self.peak_bytes is not None:
            memory = replace(memory, peak_bytes=self.peak_bytes)
        return replace(device, memory=memory)

    def constraints(self) -> list[Constraint]:
        made: list[Constraint] = []
        if self.alignment is not None and self.alignment > 1:
            dims = None if self.dims in (None, ALL_DIMS) else self.dims
            made.append(
                ShapeConstraint(self.alignment, dims=dims)
                if dims
                else ShapeConstraint(self.alignment)
            )
        if self.tensor_bytes is not None or self.peak_bytes is not None:
            made.append(MemoryConstraint(self.peak_bytes, max_tensor_bytes=self.tensor_bytes))
        return made


def _dims(given: Dims | None) -> AlignedDims | None:
    if given is None or isinstance(given, str):
        return None if given is None else _parse_dims(given, "alignment_dims")
    return tuple(given)


def _parse_dims(text: str, name: str) -> AlignedDims:
    """Which dimensions an alignment is about: `all`, `last`, or numbers such as `-2,-1`."""
    said = text.strip().lower()
    if said == ALL_DIMS:
        return ALL_DIMS
    if said == "last":
        return (-1,)
    parts = [part.strip() for part in said.split(",")]
    if not all(part.removeprefix("-").isdecimal() and len(part) < 4 for part in parts):
        raise ToolError(
            f"{name} is {text!r}; it must be all, last, or dimensions such as -2,-1.",
            hint="all: every dimension except those of size 1. last: the last dimension.",
        )
    return tuple(map(int, parts))


def configure_by_options(options: dict[str, Any] | None) -> Configuration:
    """As `torch.compile(..., options={...})` hands them over."""
    try:
        return configure(**(options or {}))
    except TypeError as error:
        known = (
            "device, strict, constraints, alignment, alignment_dims, max_memory, "
            "max_peak_memory, repro, repro_timeout_s"
        )
        raise ToolError(
            f"Invalid options for the mock backend: {error}.", f"Valid options: {known}."
        ) from None


def _listed(constraints: Iterable[Constraint] | None) -> tuple[Constraint, ...]:
    if isinstance(constraints, Constraint):
        raise ToolError("constraints must be a list: `constraints=[...]`.")
    given = tuple(constraints or ())
    check_graph(Graph(()), given)  # It says what is no constraint.
    for each in given:
        if isinstance(each, UnsupportedOpsConstraint):
            names = (*each.unsupported.patterns, *each.supported.patterns)
            problems = unknown_names(names, type(each).__name__)
            warn_of(f"{problem}. {problem.hint}".strip() for problem in problems)
    return given


def _device(device: str | os.PathLike[str] | Device | None) -> Device | None:
    if device is None:
        return None
    if isinstance(device, Device):
        warn_of(unknown_in_device(device))
        return device
    name = os.fspath(device)
    found = find_device(name)
    warn_of(unknown_in_file(name))
    return found


def _check_alignment(alignment: object) -> None:
    whole = isinstance(alignment, int) and not isinstance(alignment, bool)
    if alignment is not None and not (whole and alignment >= 1):  # type: ignore[operator]
        raise ToolError(f"alignment is {alignment!r}; it must be a whole number of at least 1.")


def _bytes(value: int | str | None, name: str) -> int | None:
    if value is None:
        return None
    try:
        return parse_bytes(value)
    except ValueError:
        raise ToolError(
            f"{name} is {value!r}; it must be a number of bytes.",
            hint='Write it as 1048576 or "16 GiB".',
        ) from None
