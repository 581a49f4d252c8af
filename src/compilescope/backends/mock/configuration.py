"""What a backend checks and how: from arguments, a device, and the environment, in this order."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from compilescope.backends.device_files import find_device
from compilescope.backends.operator_names import (
    unknown_in_device,
    unknown_in_file,
    unknown_names,
    warn_of,
)
from compilescope.errors import ToolError
from compilescope.model.byte_counts import parse_bytes
from compilescope.model.device import Alignment, Device
from compilescope.model.graph import Graph
from compilescope.rules.constraints.memory import MemoryConstraint
from compilescope.rules.constraints.operators import UnsupportedOpsConstraint
from compilescope.rules.constraints.shape import ShapeConstraint
from compilescope.rules.hardware.checking import check_graph, constraints_of
from compilescope.rules.hardware.constraint import Constraint
from compilescope.settings import MockSettings, read_mock_settings

UNNAMED = "mock"
"""What a device is called that has no name."""


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

    @property
    def name(self) -> str:
        return self.device.name if self.device is not None else UNNAMED


def configure(
    *,
    device: str | os.PathLike[str] | Device | None = None,
    strict: bool | None = None,
    constraints: Iterable[Constraint] | None = None,
    alignment: int | None = None,
    max_memory: int | str | None = None,
    repro: bool | str | os.PathLike[str] = True,
    repro_timeout_s: float = 60.0,
) -> Configuration:
    """An argument wins over the device, and a device over the environment."""
    environment = read_mock_settings()
    given = _listed(constraints)
    _check_alignment(alignment)
    max_bytes = _bytes(max_memory, "max_memory")
    chip = _device(device)
    if chip is not None:
        chip = _changed(chip, alignment, max_bytes)
        made = constraints_of(chip)
        extra = given
    else:
        made = []
        extra = (*_standard(environment, given, alignment, max_bytes), *given)
    if not 0 < repro_timeout_s <= 3600:
        raise ToolError(
            f"repro_timeout_s is {repro_timeout_s!r}; it must be seconds, at most an hour."
        )
    return Configuration(
        constraints=(*made, *extra),
        device=chip,
        extra=extra,
        strict=environment.strict if strict is None else bool(strict),
        repro=repro if isinstance(repro, bool) else Path(repro),
        repro_timeout_s=repro_timeout_s,
    )


def configure_by_options(options: dict[str, Any] | None) -> Configuration:
    """As `torch.compile(..., options={...})` hands them over."""
    try:
        return configure(**(options or {}))
    except TypeError as error:
        known = "device, strict, constraints, alignment, max_memory, repro, repro_timeout_s"
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


def _changed(device: Device, alignment: int | None, max_bytes: int | None) -> Device:
    replace = msgspec.structs.replace
    if alignment is not None:
        rules = (Alignment(multiple=alignment),) if alignment > 1 else ()
        device = replace(device, shapes=replace(device.shapes, alignment=rules))
    if max_bytes is not None:
        device = replace(device, memory=replace(device.memory, peak_bytes=max_bytes))
    return device


def _standard(
    environment: MockSettings,
    given: tuple[Constraint, ...],
    alignment: int | None,
    max_bytes: int | None,
) -> list[Constraint]:
    """What holds without a device. The environment gives way to a constraint of the same kind."""
    made: list[Constraint] = []
    if alignment is None and not any(isinstance(each, ShapeConstraint) for each in given):
        alignment = environment.alignment
    if alignment is not None and alignment > 1:
        made.append(ShapeConstraint(alignment))
    if max_bytes is None and not any(isinstance(each, MemoryConstraint) for each in given):
        max_bytes = _bytes(environment.max_memory, "MOCK_MAX_MEMORY")
    if max_bytes is not None:
        made.append(MemoryConstraint(max_bytes))
    return made


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
