"""What Dynamo did in one process of a log: graphs captured, breaks, frames given up.

Only used to find out why each graph was compiled; the findings themselves come from the digest.
"""

from __future__ import annotations

from compilescope.findings.compile_ids import without_attempt
from compilescope.model import bodies
from compilescope.model.event import Event
from compilescope.model.logged import BreakEcho, FallbackOps
from compilescope.model.stack import CodeRef, Frame

_OVERRIDE = "__torch_function__"


class ProcessLog:
    """Dynamo's side of one process: what it captured, where it broke, what it gave up.

    A log may hold a hundred thousand breaks: every question is answered by looking one thing up.
    """

    def __init__(self, events: list[Event]) -> None:
        self.captured: dict[str, tuple[Event, bodies.GraphCaptured]] = {}
        """Graphs of Dynamo's by compile id; the last attempt counts."""
        self._failed: dict[str, bodies.CompileFailed] = {}
        self._overrides: set[tuple[str, str]] = set()
        self._first_at: dict[tuple[str, int], str] = {}
        """The first break whose stack has this line."""
        self._last_in: dict[str | CodeRef | None, str] = {}
        """The last break in this function, in this file, or (None) at all."""
        self._given_up: dict[CodeRef | tuple[str, str], tuple[int, str]] = {}
        """Functions that run eagerly because of a break: which, and how late that was."""
        self.has_fallbacks = False
        for number, event in enumerate(events):
            self._take(number, event)

    def _take(self, number: int, event: Event) -> None:
        body = event.body
        if isinstance(body, bodies.GraphCaptured) and body.stage == "dynamo":
            if event.compile_id is not None:
                self.captured[without_attempt(event.compile_id)] = (event, body)
        elif isinstance(body, bodies.GraphBreak):
            self._take_break(event, body)
        elif isinstance(body, bodies.FrameSkipped) and body.because is not None:
            code = body.frame
            self._given_up[code] = (number, body.because)
            self._given_up[(code.file, code.function)] = (number, body.because)
        elif isinstance(body, bodies.CompileFailed) and event.compile_id is not None:
            self._failed[without_attempt(event.compile_id)] = body
        elif isinstance(body, BreakEcho) and body.override is not None:
            self._overrides.add((body.override.file, body.override.function))
        elif isinstance(body, FallbackOps):
            self.has_fallbacks = True

    def _take_break(self, event: Event, body: bodies.GraphBreak) -> None:
        self._last_in[None] = event.id
        if body.frame is not None:
            self._last_in[body.frame] = event.id
        for frame in event.stack:
            self._first_at.setdefault((frame.file, frame.line), event.id)
            self._last_in[frame.file] = event.id

    def failure(self, compile_id: str | None) -> bodies.CompileFailed | None:
        return None if compile_id is None else self._failed.get(without_attempt(compile_id))

    def is_override(self, code: CodeRef) -> bool:
        """Code that every operator of the program runs through, and no part of the program."""
        return code.function == _OVERRIDE or (code.file, code.function) in self._overrides

    def break_at(self, file: str, line: int) -> str | None:
        """The break at which a function stopped on this line, there or in what it called."""
        return self._first_at.get((file, line))

    def break_that_gave_up(self, code: CodeRef | None, stack: tuple[Frame, ...]) -> str | None:
        """The break for which this function, or one that the stack lies in, runs eagerly."""
        found = [self._given_up.get((frame.file, frame.function)) for frame in stack]
        if code is not None:
            found.append(self._given_up.get(code))
        latest = max((each for each in found if each is not None), default=None)
        return latest[1] if latest is not None else None

    @property
    def last_given_up(self) -> str | None:
        """The last break for which any function runs eagerly."""
        return max(self._given_up.values(), default=(0, None))[1]

    def last_break_of(self, region: CodeRef | None) -> str | None:
        """The latest break in a region: in its own function, else in its file."""
        if region is None:
            return self._last_in.get(None)
        return self._last_in.get(region) or self._last_in.get(region.file)
