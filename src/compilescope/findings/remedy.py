"""What a person can do about a cause by hand. What a fix does, the fix itself says."""

from __future__ import annotations

from typing import Literal

import msgspec


class Remedy(msgspec.Struct, frozen=True):
    """One thing to do, in the user's own terms and in one sentence.

    True wherever its rule fires: a rule cannot know what a fix would check before it changes code.
    """

    kind: Literal["source", "upgrade", "judgement"]
    text: str


def source(text: str) -> Remedy:
    return Remedy("source", text)


def upgrade(text: str) -> Remedy:
    return Remedy("upgrade", text)


def judgement(text: str) -> Remedy:
    return Remedy("judgement", text)
