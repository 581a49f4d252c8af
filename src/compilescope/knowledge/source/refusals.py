"""Why a change is not made: exceptions whose words are one clause, for the user."""

from __future__ import annotations


class Refused(Exception):
    """A fix fits but for one thing; the words say which, in one clause, for the user."""

    def __init__(self, reason: str, *, instead: str = "") -> None:
        super().__init__(reason)
        self.instead = instead
        """What a person can do, in one sentence; empty where the fix knows of nothing."""


class NotMeant(Refused):
    """The fix is for another shape of code: its reason says nothing of this cause."""


class NotTried(Refused):
    """Nobody looked: it takes more source than a report may parse. It says nothing of the cause."""


class NeedsRun(Refused):
    """It may fit, which only values seen in a run can tell: `compilescope fix` looks."""
