"""The guards of each cache entry, as the artifact `guards` prints them."""

from __future__ import annotations

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.frames import Frames
from compilescope.logs.text.dynamo.record import LogRecord
from compilescope.model.bodies import GuardSet
from compilescope.model.guard_text import KIND, count_kinds

_TREE = b"TREE_GUARD_MANAGER:"


class Guards:
    """The guards of one process."""

    def __init__(self, console: Console, process: ConsoleProcess, frames: Frames) -> None:
        self._console = console
        self._process = process
        self._frames = frames

    def told(self, record: LogRecord) -> bytes:
        """A record of the artifact: a title, the tree, or how long checking it took. Gives the
        tree's text."""
        lines = [record.first, *record.rest]
        start = next((n for n, line in enumerate(lines) if line.startswith(_TREE)), None)
        if start is None:
            return b""
        text = b"\n".join(lines[start:])
        kinds = count_kinds(text)
        compiled = self._frames.of(record.compile_id)
        body = GuardSet(
            count=sum(kinds.values()),
            kinds=kinds,
            artifact=self._console.writer.artifact(text, KIND),
            frame=compiled.code if compiled else None,
        )
        if compiled is not None:
            compiled.guards = body.count
        self._console.event(
            self._process,
            body,
            compile_id=record.compile_id,
            time_ns=record.time_ns,
            epoch=self._frames.epoch,
        )
        return text
