"""The terms of the gate: the limits that a run is held to, and the check made of each."""

from __future__ import annotations

import msgspec

from compilescope.findings.finding import Finding
from compilescope.model.outcomes import JudgedLimit


class GateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be lost. None: not looked at."""

    breaks: int | None = None
    """Graph break sites."""
    recompiles: int | None = None
    """Compilations of a function after its first, over all functions and processes."""
    graphs: int | None = None
    """Over all processes."""
    eager: int | None = None
    """Functions that run eagerly, as a whole or from a break on."""
    failures: int | None = None
    """Compilations that raised, whether or not the program went on."""
    violations: int | None = None
    """Places that a device does not take."""
    differences: int | None = None
    """Values that differ from their reference."""
    coverage: float | None = None
    """At least so much of the time inside compiled graphs, in percent."""
    slowdown: float | None = None
    """Of a benchmark: at most so many times the time of eager mode, or of an earlier run."""

    @property
    def given(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__struct_fields__)

    def over(self, other: GateLimits) -> GateLimits:
        """These, and those of `other` where these say nothing."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return msgspec.structs.replace(
            other, **{name: value for name, value in values.items() if value is not None}
        )


NOTHING_LOST = GateLimits(breaks=0, recompiles=0, eager=0, failures=0)
"""The limits of someone who gave none."""
NOTHING_WRONG = GateLimits(breaks=0, recompiles=0, failures=0)
"""The same for benchmarks."""


class GateCheck(JudgedLimit, frozen=True, kw_only=True):
    """One limit, held against the run, and what counts against it."""

    findings: tuple[Finding, ...] = ()
