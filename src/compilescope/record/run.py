"""A Run: one header, the events of all its processes as one stream, and their artifacts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar, cast

from compilescope.base.errors import ToolError
from compilescope.record import bodies
from compilescope.record.artifacts import Artifacts, DiskArtifacts
from compilescope.record.event import Event
from compilescope.record.eventfile import EventReader, event_files
from compilescope.record.header import RunHeader, read_header, signal_name
from compilescope.record.presence import Presence, read_presence
from compilescope.record.uncollected import uncollected

B = TypeVar("B")


class Run:
    """What was seen. Views and rules read it; nothing changes it."""

    def __init__(
        self,
        header: RunHeader,
        events: list[Event],
        artifacts: Artifacts,
        *,
        unread: int = 0,
        unread_files: tuple[str, ...] = (),
        torn: bool = False,
        live: bool = False,
        presence: Presence | None = None,
    ) -> None:
        self.header = header
        self.events = sorted(events, key=lambda event: event.time_ns)
        self.artifacts = artifacts
        self.unread = unread
        """Lines that could not be read."""
        self.unread_files = unread_files
        """Event files that could not be read, or not to their end, each with the reason."""
        self.torn = torn
        self.live = live
        """True while it is still being written."""
        self.presence = presence
        """Which processes could be watched; None where that was not noted."""

    def of(self, kind: type[B]) -> Iterator[tuple[Event, B]]:
        """Events whose body is a `kind`, with that body."""
        # One call for all of them: rules ask for half a million in a long job.
        pairs = ((event, event.body) for event in self._by_kind.get(kind, ()))
        return cast("Iterator[tuple[Event, B]]", pairs)

    def count(self, kind: type[B]) -> int:
        return len(self._by_kind.get(kind, ()))

    @functools.cached_property
    def _by_kind(self) -> dict[type, list[Event]]:
        """Rules ask for kinds over and over; a long job has hundreds of thousands of events."""
        found: dict[type, list[Event]] = {}
        for event in self.events:
            found.setdefault(type(event.body), []).append(event)
        return found

    def events_with(self, ids: Iterable[str]) -> list[Event]:
        """The events of these ids, in their order of time."""
        places = sorted({self._places[each] for each in ids if each in self._places})
        return [self.events[place] for place in places]

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {event.id: place for place, event in enumerate(self.events)}

    def narrowed(self, keep: Callable[[Event], bool]) -> Run:
        """The same run, of which only the events to keep are seen.

        What is known of their processes as a whole stays, so that the part knows its torch, its
        sources and whether its record is whole.
        """
        kept = {event.id: event for event in self.events if keep(event)}
        processes = {event.pid for event in kept.values()}
        for event in self.events:
            if is_standing(event) and (event.pid in processes or not processes):
                kept[event.id] = event
        return Run(
            self.header,
            list(kept.values()),
            self.artifacts,
            unread=self.unread,
            unread_files=self.unread_files,
            torn=self.torn,
            live=self.live,
            presence=self.presence,
        )

    @property
    def torch_version(self) -> str | None:
        """Of its processes; a benchmark or a sweep knows it from its machines."""
        started = next((body.torch for _, body in self.of(bodies.ProcessStarted)), None)
        if started is not None:
            return started
        return next((body.torch for _, body in self.of(bodies.Machine) if body.torch), None)

    def takes(self, argument: str) -> bool:
        """Does `torch.compile` of its torch? Runs that did not note it may."""
        noted = [body.compile_arguments for _, body in self.of(bodies.ProcessStarted)]
        return not any(noted) or any(argument in each for each in noted)

    def keeps_source(self, file: str) -> bool:
        return file in self._kept_sources

    def source_of(self, file: str) -> str | None:
        """The text of a file as it was when it ran."""
        kept = self._kept_sources.get(file)
        return self.artifacts.get(kept) if kept is not None else None

    @functools.cached_property
    def _kept_sources(self) -> dict[str, str]:
        """Of each file the first that was recorded."""
        found: dict[str, str] = {}
        for _, body in self.of(bodies.SourceSeen):
            found.setdefault(body.file, body.artifact)
        return found

    @property
    def cut_short(self) -> str | None:
        """Why the record may lack its end; None where it is whole."""
        if self.live:
            return None
        if self.header.signal is not None:
            return f"the program was killed by {signal_name(self.header.signal)}"
        if self.unread_files:
            first, more = self.unread_files[0], len(self.unread_files) - 1
            return f"{first}{f' and {more} more event files' if more else ''} could not be read"
        if self.torn or self.unread:
            return (
                "an event file ends in the middle of a line"
                if self.torn
                else (f"{self.unread} lines could not be read")
            )
        lost = sum(body.lost for _, body in self.of(bodies.ProcessEnded))
        if lost:
            return f"{lost} events could not be written"
        ended = {event.pid for event, _ in self.of(bodies.ProcessEnded)}
        for event, body in self.of(bodies.ProcessStarted):
            if event.pid in ended or body.forked:
                continue
            # os._exit in the program's own process skips the end mark, yet its launcher saw it go.
            if event.pid == self.header.main_pid and self.header.exit_status is not None:
                continue
            return f"process {event.pid} stopped without recording its end"
        if self.header.launcher_pid is not None and self.header.ended_ns is None:
            return "compilescope was stopped before the program ended"
        return None


_STANDING = (
    bodies.ProcessStarted,
    bodies.ProcessEnded,
    bodies.SourceSeen,
    bodies.HookUnavailable,
)


def is_standing(event: Event) -> bool:
    """Does it speak of the whole process, and not of what was done at the time?"""
    return isinstance(event.body, _STANDING)


def read_run(folder: Path, *, header: RunHeader | None = None, live: bool | None = None) -> Run:
    """The run in `folder`, whatever state it was left in.

    Who writes it may know better than the disk how it ended, or that it goes on.
    """
    header = header if header is not None else read_header(folder)
    reader = EventReader()
    events: list[Event] = []
    unread_files: list[str] = []
    try:
        files = event_files(folder)
        with uncollected():
            for path in files:
                try:
                    events.extend(reader.read(path))
                except OSError as error:
                    unread_files.append(f"{path.name} ({error.strerror})")
                    if len(unread_files) == len(files):
                        raise
    except OSError as error:
        raise ToolError(f"The run in {folder} cannot be read: {error.strerror}.") from None
    return Run(
        header,
        events,
        DiskArtifacts(folder / "artifacts"),
        unread=reader.unread,
        unread_files=tuple(unread_files),
        torn=bool(reader.torn_files),
        live=is_live(header) if live is None else live,
        presence=read_presence(folder),
    )


def is_live(header: RunHeader) -> bool:
    """Is its launcher still at work? Only this machine can tell."""
    if header.ended_ns is not None or header.launcher_pid is None:
        return False
    import socket  # Only here, and it takes long to load.

    if header.host != socket.gethostname():
        return False
    # Not with the module: a captured program need not pay for psutil.
    from compilescope.base.processes.table import is_running

    return is_running(header.launcher_pid, since=header.started_ns / 1e9)
