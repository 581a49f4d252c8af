"""What the user asks of a search for fixes: which causes, which fixes, how long, how often.

Plain data with the defaults of `compilescope fix`. Nothing here decides or runs anything. How a
program is run is the same for every search, `tune` included; so is the file in which it begins.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import Deadline
from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.program_files import main_file_of
from compilescope.change.fixes.subject import Subject

if TYPE_CHECKING:
    from compilescope.change.repair.search.proposer import Proposer
    from compilescope.change.repair.trials.version import Version
    from compilescope.change.repair.trials.warm.parent import WarmParent
    from compilescope.change.repair.trials.workbench import Workbench
    from compilescope.instrument.recorder.target import Target


def _silent(doing: str, done: int, total: int) -> None:
    pass


def _mute(line: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """How a search runs the program, whatever it is for."""

    limit_s: float = 300.0
    """For one run of the program."""
    budget_s: float | None = None
    """For the whole search; None: as long as it takes."""
    deadline: Deadline | None = None
    """The same, of the command that asks: it began earlier. None: from the start of the search."""
    seed: int = 0
    stdin: bytes = b""
    compile_names: tuple[str, ...] = ()
    backend: str | None = None
    plain: bool = False
    """Stand in for the packages of a device that is not here: the program runs on plain torch."""
    home: Path | None = None
    """Where runs live: the original's run is kept there, with the attempts; None: nowhere."""
    progress: Callable[[str, int, int], None] = _silent
    """What is done now, how much of it, of how much."""
    tell: Callable[[str], None] = _mute
    """What has come of a step, in one line."""
    say: Callable[[str], None] = _mute
    """Likewise, for what nobody is to miss: a fix was verified."""

    def workbench(
        self,
        target: Target,
        *,
        deadline: Deadline | None = None,
        warm: WarmParent | None = None,
        original: Version | None = None,
    ) -> Workbench:
        """Without a warm process each run is a fresh one, as a user's is."""
        from compilescope.change.repair.trials.workbench import Workbench

        return Workbench(
            target,
            compile_names=self.compile_names,
            backend=self.backend,
            limit_s=self.limit_s,
            stdin=self.stdin,
            seed=self.seed,
            plain=self.plain,
            warm=warm,
            deadline=deadline or self.deadline,
            original=original,
        )


@dataclass(frozen=True, kw_only=True)
class SearchOptions(ProgramOptions):
    """What the user asks for."""

    site: str | None = None
    """`file:line`, or only the file: causes there alone."""
    rules: frozenset[str] = frozenset()
    """Causes of these rules, ids or categories, or fixes of these names; empty: all."""
    safe_only: bool = False
    own_only: bool = False
    """Leave installed packages alone."""
    following: int = 0
    """So many fresh processes come after the search, within the budget."""
    timed: bool = True
    proposer: Proposer | None = None
    """Somebody who is asked for patches where no fix of ours holds."""
    rounds: int = 6
    """A mended break may uncover the next one: so often it is looked again."""

    @property
    def most_rounds(self) -> int:
        """A line is the original's: after a round it may be another one's."""
        return 1 if self.site is not None and ":" in self.site else self.rounds

    def check(self) -> None:
        """Say what is wrong before anything runs."""
        if self.site is not None:
            _, _, line = self.site.rpartition(":")
            if ":" in self.site and not line.isdecimal():
                raise ToolError(f"{self.site} does not name a line.", hint="Use --site FILE:LINE.")
        known = {name for fix in all_fixes() for name in (fix.id, *fix.rules)}
        for name in sorted(self.rules - known):
            raise ToolError(
                f"No fix is named {name} or applies to it.", hint="See `compilescope fix --list`."
            )

    def wants(self, subject: Subject) -> bool:
        """Is this cause among those asked for?"""
        if self.site is not None:
            file, _, line = self.site.rpartition(":")
            file, line = (file, line) if file else (line, "")
            same = subject.file == file or subject.file.endswith(f"/{file.lstrip('./')}")
            if not same or (line and int(line) != subject.line):
                return False
        if not self.rules or self.rules & subject.keys:
            return True
        return any(fix.id in self.rules and fix.rules & subject.keys for fix in all_fixes())

    def wants_fix(self, name: str) -> bool:
        """Where fixes are named, only those are tried; some only where they are."""
        named = self.rules & {fix.id for fix in all_fixes()}
        by_name = {fix.id for fix in all_fixes() if fix.by_name}
        return name in named if named else name not in by_name


def main_file(target: Target) -> str:
    """Where a program begins: the absolute path; empty where it has no file of its own."""
    return main_file_of(target.shown, os.getcwd())
