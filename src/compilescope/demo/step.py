"""A step of the tour: what it shows, the commands it runs, and what they must do."""

from __future__ import annotations

import importlib.util
import re
import shlex
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "failed", "skipped", "unavailable"]
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Command:
    """One command, as typed in a shell."""

    words: tuple[str, ...]
    """The first is `compilescope` or `python`."""
    expected: int = 0
    """Its exit status, if it does what it should."""
    environment: tuple[tuple[str, str], ...] = ()
    shows: tuple[str, ...] = ()
    """What its output must contain."""
    since: str = ""
    """Its output is shown from the first line that contains this; empty: from the start."""
    lines: int = 48
    """At most this many lines of it are shown."""
    document: bool = False
    """Its stdout is JSON: stderr is kept apart."""

    @property
    def text(self) -> str:
        """To copy into a shell."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment]
        return " ".join([*variables, shlex.join(self.words)])


@dataclass(frozen=True)
class TourStep:
    """One step of the tour: it shows one capability."""

    id: str
    order: int
    title: str
    text: str
    """One or two sentences on what it shows."""
    commands: tuple[Command, ...]
    programs: tuple[str, ...] = ("model.py",)
    """Files from `programs/` that the commands read."""
    after: tuple[str, ...] = ()
    """Steps whose results it reads."""
    modules: tuple[str, ...] = ("torch",)
    """Packages without which it can't run."""
    makes: tuple[str, ...] = ()
    """Files it leaves behind."""

    def missing(self) -> str:
        """Why it can't run here; empty if it can."""
        absent = [name for name in self.modules if importlib.util.find_spec(name) is None]
        return f"{absent[0]} is not installed" if absent else ""


@dataclass(frozen=True)
class CommandResult:
    """A command that ended."""

    command: Command
    exit_status: int
    seconds: float
    output: str
    errors: str = ""
    """Its stderr, where that is kept apart."""

    @property
    def plain(self) -> str:
        """Its output without colors."""
        return _COLOR.sub("", self.output)

    @property
    def problem(self) -> str:
        """What it did not do; empty if it did all it should."""
        if self.exit_status != self.command.expected:
            return f"exit status {self.exit_status}, expected {self.command.expected}"
        output = " ".join(self.plain.split())  # Lines wrap where the terminal ends.
        lacking = [words for words in self.command.shows if words not in output]
        return f"its output does not contain {lacking[0]!r}" if lacking else ""


@dataclass(frozen=True)
class Result:
    """What came of a step."""

    step: TourStep
    status: Status
    reason: str = ""
    """Why it failed or did not run."""
    ran: tuple[CommandResult, ...] = field(default=())

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.ran)
