"""What the user asks of a search for a faster step. Plain data; nothing here runs anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from compilescope.base.errors import ToolError
from compilescope.change.repair.search.options import ProgramOptions
from compilescope.change.tune.candidate import all_candidates

_CORES_EACH = 4
"""Chosen: Inductor compiles with several processes of its own."""


@dataclass(frozen=True, kw_only=True)
class TuneOptions(ProgramOptions):
    """What the user asks for."""

    step: str | None = None
    """`file.py:function`; None: it is found."""
    only: frozenset[str] = frozenset()
    """Ids of candidates; empty: all."""
    lower_precision: bool = False
    """Candidates that change numbers on purpose may be part of the result."""
    limit_s: float = 600.0
    """For one process to get where it is wanted."""
    jobs: int | None = None
    """Versions that compile at the same time; None: by the number of cores."""
    caches: Path | None = None
    """An empty folder for what compilers keep of each version, which stays; None: a temporary
    one."""

    @property
    def at_once(self) -> int:
        return self.jobs or max(1, (os.cpu_count() or 1) // _CORES_EACH)

    def check(self) -> None:
        """Say what is wrong before anything runs."""
        known = {each.id for each in all_candidates()}
        for name in sorted(self.only - known):
            raise ToolError(
                f"No candidate is named {name}.", hint="See `compilescope tune --list`."
            )
        if self.step is not None:
            file, _, function = self.step.rpartition(":")
            if not file or not function.replace(".", "_").isidentifier():
                raise ToolError(
                    f"{self.step} does not name a function.", hint="Use --step FILE:FUNCTION."
                )
