"""What to do about a cause: by hand, in the words of its rule (`Remedy`), or a change that a fix
makes and describes itself. `Advice` is what every view shows of both, the best first."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["proven", "proposed", "by hand", "not tried"]
"""`proven`: the run holds the attempt that showed it. `proposed`: a fix would do it, and nobody
has run it yet. `by hand`: for a person to do. `not tried`: a limit kept the fixes from being asked;
its words name the command that asks them."""


class Remedy(msgspec.Struct, frozen=True):
    """One thing to do, in the user's own terms and in one sentence.

    True wherever its rule fires: a rule cannot know what a fix would check before it changes code.
    """

    kind: Literal["program", "source", "upgrade", "judgement"]
    """`program`: it changes what is compiled, which makes changes of single lines moot."""
    text: str


def program(text: str) -> Remedy:
    return Remedy("program", text)


def source(text: str) -> Remedy:
    return Remedy("source", text)


def upgrade(text: str) -> Remedy:
    return Remedy("upgrade", text)


def judgement(text: str) -> Remedy:
    return Remedy("judgement", text)


class Advice(msgspec.Struct, frozen=True):
    """One thing to do."""

    fix: str | None
    """The id of the fix; None for words that no fix stands behind."""
    status: Status
    diff: str
    """Unified, for `patch -p1` in the folder of the program; empty where there is none."""
    text: str
    """One sentence."""


def is_not_tried(advice: tuple[Advice, ...]) -> bool:
    """Is it unknown whether a fix would do it?"""
    return bool(advice) and advice[0].status == "not tried"


def something_to_do(advice: tuple[Advice, ...]) -> Advice | None:
    """The first that says what to do about the cause."""
    return next((each for each in advice if each.status != "not tried"), None)
