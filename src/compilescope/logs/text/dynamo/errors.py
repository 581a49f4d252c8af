"""Tracebacks of exceptions that ended a compilation, as Python prints them to the console."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilescope.logs.text.console import Console
from compilescope.logs.text.dynamo.skips import read_error
from compilescope.logs.text.lines import Tag, plain
from compilescope.model.bodies import CompileFailed, LogLine
from compilescope.model.break_text import BreakTexts, is_untyped

_START = b"Traceback (most recent call last):"
_INDENTED = (b" ", b"\t")
_CHAINED = (b"The above exception was the direct cause", b"During handling of the above exception")
_COMPILERS = ("torch._dynamo.", "torch._inductor.", "torch.fx.", "torch._functorch.")
# Chosen: bounds for memory: lines of a traceback, and letters of its message.
_MOST_LINES = 5000
_MOST_WORDS = 4000
_AFTER = 80
"""Lines of a message that may follow the exception's first one. Chosen: room for PyTorch's messages
with their hints."""


@dataclass
class _OpenError:
    lines: list[bytes] = field(default_factory=list)
    closing: int = 0
    """Lines since the exception's own line."""


class Errors:
    """The exceptions of one log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._open: dict[Tag, _OpenError] = {}

    @property
    def busy(self) -> bool:
        return bool(self._open)

    def line(self, line: bytes, tag: Tag) -> bool:
        held = self._open.get(tag)
        if held is None:
            if not line.startswith(_START):
                return False
            self._open[tag] = _OpenError([line])
            return True
        if self._goes_on(held, line):
            if len(held.lines) < _MOST_LINES:
                held.lines.append(line)
            return True
        self._close(tag)
        return self.line(line, tag)

    def _goes_on(self, held: _OpenError, line: bytes) -> bool:
        if line.startswith((_START, *_CHAINED)):
            held.closing = 0
            return True
        if not held.closing:
            if line and not line.startswith(_INDENTED):
                held.closing = 1
            return True
        # The message's own lines: torch's are indented, or stand behind empty ones.
        held.closing += 1
        known = (
            line.startswith((*_INDENTED, b"from user code", b"Set TORCHDYNAMO", b"***")) or not line
        )
        return held.closing < _AFTER and (known or not held.lines[-1])

    def _close(self, tag: Tag) -> None:
        held = self._open.pop(tag)
        name, message, stack = read_error([plain(line) for line in held.lines])
        process = self._console.process_behind(tag)
        if not name:
            return
        short = name.rpartition(".")[2]
        if not name.startswith(_COMPILERS):
            text = f"{short}: {message}"[:1000]
            self._console.event(process, LogLine("program", "error", text), stack=stack)
            return
        root = None
        if short in ("Unsupported", "UserError") or is_untyped(message):
            root, _ = BreakTexts().root_and_wrappers(message)
        body = CompileFailed(
            error=short,
            message=message[:_MOST_WORDS],
            gb_type=root.gb_type if root else None,
            gb_id=root.gb_id if root else None,
            hints=root.hints if root else (),
        )
        self._console.tally.records += 1
        self._console.event(process, body, stack=stack)

    def finish(self) -> None:
        for tag in list(self._open):
            self._close(tag)
