"""One graph that a log tells of, and why it was compiled."""

from __future__ import annotations

import msgspec

from compilescope.analysis.logged.classes import GraphClass
from compilescope.model.logged import ModuleStage
from compilescope.model.stack import Frame


class Reason(msgspec.Struct, frozen=True):
    """Why a graph exists."""

    kind: GraphClass
    words: str = ""
    """What of the log says so."""
    because: str | None = None
    """Id of the event that led to it: a graph break, most of the time."""


class LoggedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph in the log."""

    event: str
    name: str
    """What the log calls it: a module's name, a hash, a compile id."""
    rank: int
    kind: GraphClass
    words: str
    because: str | None
    stages: tuple[ModuleStage, ...]
    ops: int | None
    place: Frame | None
    """The line of the program that most of it came from, or that asked for it."""
    through: tuple[Frame, ...] = ()
    """Helpers and libraries between that line and torch_xla."""
    error: str = ""
    failed_stage: str = ""
    cut: str = ""
