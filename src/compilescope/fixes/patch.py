"""A patch: what one fix would change, and what a user could see change with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Allowance = Literal["drops-output", "moves-output", "exception-type", "other-random-numbers"]
"""A difference that a patch states, so that the verifier does not hold it against it.

`drops-output`: lines on stdout, stderr or in logs are missing. `moves-output`: they come in another
order. `exception-type`: where the original raises, the patched one raises too, but maybe another
class. `other-random-numbers`: values drawn at random differ, their distribution does not.
"""


class Refused(Exception):
    """A fix fits but for one thing; the words say which, in one clause, for the user."""

    def __init__(self, reason: str, *, instead: str = "") -> None:
        super().__init__(reason)
        self.instead = instead
        """What a person can do, in one sentence; empty where the fix knows of nothing."""


class NotMeant(Refused):
    """The fix is for another shape of code: its reason says nothing of this cause."""


class NeedsRun(Refused):
    """It may fit, which only values seen in a run can tell: `compilescope fix` looks."""


@dataclass(frozen=True)
class Patch:
    """New texts for files of the program."""

    files: Mapping[str, str]
    """By absolute path: the whole new text."""
    states: str = ""
    """What a user could see change, in one sentence; empty where nothing does."""
    allows: frozenset[Allowance] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the program is to be started with."""
    needs_human: str = ""
    """What a person has to fill in or decide; such a patch is never called verified."""

    @property
    def safe(self) -> bool:
        """The same observable behaviour."""
        return not self.states and not self.needs_human
