"""What a section of a report is, and what it is drawn from."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from compilescope.fixes.advice import advised
from compilescope.model.event import Event
from compilescope.model.run import Run
from compilescope.registry.pages import Pages
from compilescope.report.advice import Told
from compilescope.report.blocks import Block
from compilescope.rules.digest import Digest, digest
from compilescope.rules.findings import Finding, by_cost, findings
from compilescope.rules.source import Sources


@dataclass(frozen=True)
class Reading:
    """A run as a report reads it."""

    run: Run
    full: bool = False
    """The whole story, or the summary that a user sees first."""
    page: bool = False
    """Drawn as a page, whose first screen tells the most expensive causes before their time."""
    pages: Pages | None = None
    """Where graph breaks are explained at length; None where no link is wanted."""
    jobs_at: str = ""
    """The address that a sweep's jobs have their pages under; empty where they have none."""
    reader: Literal["command line", "python"] = "command line"
    """Who reads: in a notebook nobody can give a flag."""

    @functools.cached_property
    def digest(self) -> Digest:
        """With what to do about each cause."""
        return advised(self.run, digest(self.run))

    @functools.cached_property
    def causes(self) -> list[Finding]:
        """Most expensive first; a cause's number is its place in this list, from 1."""
        return by_cost(findings(self.digest))

    @functools.cached_property
    def told(self) -> Told:
        """Of changes, so far in this document."""
        return Told(in_python=self.reader == "python", folding=self.page)

    @functools.cached_property
    def sources(self) -> Sources:
        return Sources(self.run)

    @functools.cached_property
    def events_by_id(self) -> dict[str, Event]:
        return {event.id: event for event in self.run.events}

    @property
    def see_all(self) -> str:
        """Where a list that was cut short is whole."""
        return "`.digest` has them all" if self.reader == "python" else "see --json"

    @property
    def root(self) -> str:
        return self.run.header.root


@dataclass(frozen=True)
class Section:
    """A part of the report. One that builds no blocks is left out."""

    id: str
    order: int
    build: Callable[[Reading], list[Block]]
    title: str = ""
    note: str = ""
    in_summary: bool = True
    """Part of what `show` prints; every section is part of the full report."""
