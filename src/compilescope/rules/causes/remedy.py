"""What can be done about a cause."""

from __future__ import annotations

from typing import Literal

import msgspec


class Remedy(msgspec.Struct, frozen=True):
    """One thing to do, in the user's own terms."""

    kind: Literal["source", "config", "upgrade", "judgement"]
    text: str


def source(text: str) -> Remedy:
    return Remedy("source", text)


def config(text: str) -> Remedy:
    return Remedy("config", text)


def upgrade(text: str) -> Remedy:
    return Remedy("upgrade", text)


def judgement(text: str) -> Remedy:
    return Remedy("judgement", text)
