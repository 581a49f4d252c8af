"""Where a recorder appends its events: a file for each process, or memory.

No journal raises for want of disk space: events that could not be written are counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from compilescope.record.artifacts import Artifacts, MemoryArtifacts, RecordedArtifacts
from compilescope.record.event import Event, encode
from compilescope.record.eventfile import EventFile


class Journal(Protocol):
    """Takes events in order. Never raises for want of disk space."""

    artifacts: Artifacts

    def open(self, rank: int) -> str:
        """Begin; the name of this process within the run comes back."""
        ...

    def append(self, event: Event, more: bool = False) -> None:
        """One that has `more` to follow at once may be written with it."""
        ...

    @property
    def lost(self) -> int: ...
    def close(self) -> None: ...


class DiskJournal:
    """An event file in the run's folder, claimed when the first event comes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: EventFile | None = None
        self._texts = RecordedArtifacts(folder / "artifacts")
        self.artifacts: Artifacts = self._texts

    def open(self, rank: int) -> str:
        self._file, name = EventFile.claim(self._folder, rank)
        self._texts.events = self._file
        return name

    def append(self, event: Event, more: bool = False) -> None:
        if self._file is not None:
            self._file.write(encode(event), more)

    @property
    def lost(self) -> int:
        return self._file.lost if self._file is not None else 0

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = self._texts.events = None


class MemoryJournal:
    """For a capture inside a Python session."""

    lost = 0

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.artifacts: Artifacts = MemoryArtifacts()

    def open(self, rank: int) -> str:
        return str(rank)

    def append(self, event: Event, more: bool = False) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass
