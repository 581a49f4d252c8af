"""What to do about a cause, best first: a change that was proven, one that is proposed, words."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["proven", "proposed", "by hand"]
"""`proven`: the run holds the attempt that showed it. `proposed`: a fix would do it, and nobody
has run it yet. `by hand`: for a person to do."""


class Advice(msgspec.Struct, frozen=True):
    """One thing to do."""

    fix: str | None
    """The id of the fix; None for words that no fix stands behind."""
    status: Status
    diff: str
    """Unified, for `patch -p1` in the folder of the program; empty where there is none."""
    text: str
    """One sentence."""
