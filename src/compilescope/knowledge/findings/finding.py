"""What a run found out: one record a cause, whatever its kind, from the events to every view.

Each kind is a struct of its own beside this one (`breaks`, `recompiles`, `eager`, `failures`), made
of events alone. `rules` fills in what the catalogue says (`rule`, `category`, `why`, `remedy`), and
the fixes `advice`; the words for a list are made of these when they are asked for.
"""

from __future__ import annotations

import enum

import msgspec

from compilescope.knowledge.findings.remedy import Advice, Remedy, something_to_do
from compilescope.record.body import FindingKind, Level
from compilescope.record.stack import Frame, origin_of


class Toll(enum.IntEnum):
    """When a cause costs something, worst first."""

    PROGRAM = 0
    """The wrong part of the program is compiled: what else is lost in there is moot."""
    EAGER = 1
    """In every call: a whole function runs without a graph."""
    AGAIN = 2
    """Something is compiled again and again."""
    EVERY_CALL = 3
    """In every call, a little: there are two graphs instead of one."""
    ONCE = 4
    """It was compiled once more, and has been reused since."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of lost compilation."""

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    """On `end_line`."""
    end_line: int | None = None
    """The line that the expression ends on."""
    function: str = ""
    source: str = ""
    fingerprint: str
    """A name that outlives edits: what a baseline keeps and a comparison matches."""
    count: int = 1
    """How often it was seen."""
    ranks: tuple[int, ...] = ()
    because: tuple[str, ...] = ()
    """Ids of the events behind it."""
    category: str = ""
    """Of the registry's taxonomy."""
    rule: str | None = None
    """The rule of the catalogue that explains it; None where none does."""
    why: str = ""
    remedy: tuple[Remedy, ...] = ()
    """What a person can do by hand; `advice` says what to do first."""
    advice: tuple[Advice, ...] = ()
    """Best first. Empty until the fixes were asked."""
    seconds: float | None = None
    """Compile time that it cost; None where that is not known."""
    lost_ms: float | None = None
    """Time lost outside compiled graphs because of it; None where nothing was timed."""
    called_at: Frame | None = None
    """The user's line that led there, where the place is not the user's: in an installed package.
    Of a recompile the call that compiled again."""

    @property
    def kind(self) -> FindingKind:
        raise NotImplementedError

    @property
    def rule_id(self) -> str:
        """What it is, for machines: `GB0170`, `recompile/size-change`, `failure/RuntimeError`."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        raise NotImplementedError

    @property
    def message(self) -> str:
        """Why it is so."""
        raise NotImplementedError

    @property
    def level(self) -> Level:
        return "warning"

    @property
    def first_step(self) -> str:
        """What to try first, in words; empty where nothing is known."""
        told = something_to_do(self.advice) or next(iter(self.remedy), None)
        return told.text if told else ""

    @property
    def cost_seconds(self) -> float:
        """All that is known of what it cost."""
        return (self.seconds or 0.0) + (self.lost_ms or 0.0) / 1e3

    @property
    def toll(self) -> Toll:
        """What it costs once the program is warm."""
        return Toll.EVERY_CALL

    @property
    def own(self) -> bool:
        """In the user's own files, not in an installed package."""
        return is_own(self.file)


class WordedFinding(Finding, frozen=True, kw_only=True):
    """One whose words were made elsewhere: in a job of a sweep, of a benchmark that failed."""

    kind: FindingKind
    rule_id: str
    title: str
    message: str
    level: Level
    first_step: str = ""


def is_own(file: str) -> bool:
    """Is a cause at this place the user's? A place that is not known may well be.

    Code without a file (`-c`, a prompt) is named only where no file of anybody's is on the stack.
    """
    return origin_of(file) in ("user", "generated")
