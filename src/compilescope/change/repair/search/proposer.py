"""Somebody who proposes patches, such as a language model: what he is told of a cause, and what he
answers. Data only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from compilescope.change.fixes.subject import Program, Subject
from compilescope.record.fix_search import FixAttempt


@dataclass(frozen=True)
class ProposedPatch:
    """What came of asking once."""

    reply: str
    """All that was said."""
    diff: str = ""
    """The unified diff in it; empty where there is none."""
    problem: str = ""
    """Why there is none, in a clause."""
    is_last: bool = False
    """It says that there is nothing to propose."""


@dataclass(frozen=True)
class RejectedPatch:
    """One that did not hold."""

    proposal: ProposedPatch
    reason: str


@dataclass(frozen=True)
class OpenCause:
    """A cause without a verified fix, and all that is known of it."""

    subject: Subject
    texts: Mapping[str, str]
    """The files that a patch may change, by path."""
    attempts: tuple[FixAttempt, ...] = ()
    """What our own fixes came to."""
    rejected: tuple[RejectedPatch, ...] = ()
    """What was proposed so far."""

    @property
    def program(self) -> Program:
        return self.subject.program


class Proposer(Protocol):
    """Who is asked."""

    @property
    def name(self) -> str: ...

    def propose(self, cause: OpenCause) -> ProposedPatch | None:
        """None: he has said all that he will say of this cause."""
