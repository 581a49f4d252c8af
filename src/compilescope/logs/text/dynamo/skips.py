"""Frames that Dynamo leaves to eager mode, and failed compilations, as events.

Of both there are records; of a failure also the traceback that Python prints to the console.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.breaks import Breaks, frame_of
from compilescope.logs.text.dynamo.frames import Frames, origin, recast
from compilescope.logs.text.dynamo.recompiles import Recompiles
from compilescope.logs.text.dynamo.record import LogRecord, frame_key
from compilescope.logs.text.lines import Tag, plain
from compilescope.logs.words.tracebacks import read_traceback, user_part
from compilescope.record.bodies import CompileFailed, FrameSkipped, LogLine, SkipCause
from compilescope.record.break_text import BreakTexts, is_untyped
from compilescope.record.stack import CodeRef, Frame

_WONT = re.compile(r"WON'T CONVERT (?P<name>\S+) (?P<file>.+) line (?P<line>\d{1,9})\s*$")
_SKIPPING = re.compile(
    r"skipping: (?P<name>\S{1,300}) \(reason: (?P<reason>.*), file: (?P<file>.{1,1000})\)\s*$", re.S
)
_LOOP = "graph break in a for/while loop"
_ERROR = re.compile(r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*): (?P<message>.*)", re.S)
_NAME = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failed|Interrupt|Exit)\s*$")
_TRACEBACK = "Traceback (most recent call last)"
_FROM_USER = "\nfrom user code:"
_MOST_WORDS = 4000
"""Letters. Chosen: as of other errors."""
_CAUSES: dict[str, SkipCause] = {
    "non-infra torch dispatch mode present": "dispatch-mode",
    "Dynamo tracing is disabled": "disabled",
}
_ASKED_FOR = "Dynamo decided to skip the frame while tracing"
_NOTHING = "No ops traced"
_SUPPRESSED_WORDS = "an error was suppressed during compilation"
_SUPPRESSED = ("an error was suppressed", "compilation failed with a custom frame execution")


class Skips:
    """Frames of one process that Dynamo gave up."""

    def __init__(
        self,
        console: Console,
        process: ConsoleProcess,
        frames: Frames,
        breaks: Breaks,
        recompiles: Recompiles,
    ) -> None:
        self._console = console
        self._process = process
        self._frames = frames
        self._breaks = breaks
        self._recompiles = recompiles
        self._in_contextlib = False
        """The standard library is making or leaving a context manager."""

    def wont_convert(self, record: LogRecord) -> bool:
        """An error was swallowed and the frame runs eagerly."""
        found = _WONT.match(record.title)
        if found is None:
            return False
        code = self._frames.code(found["file"], int(found["line"]), found["name"])
        name, message, stack = read_error(record.lines())
        key = self._key_of(code)
        compiled = self._frames.by_id.get(key)
        if compiled is not None:
            compiled.kept = False
        self._breaks.explained(message)
        self._breaks.flush()
        if code in self._recompiles.limited:
            self._write(code, "recompile-limit", message.split("\n", 1)[0])
            return True
        short = name.rpartition(".")[2]
        if short in ("Unsupported", "UserError", "") or is_untyped(message):
            self._skipped_at_break(code, key, message)
        else:
            self._failed(code, record, short, message, stack)
        return True

    def _key_of(self, code: CodeRef) -> str:
        """The record has no compile id: the frame compiled last is meant, or the last of the
        same code."""
        current = self._frames.current
        if current is not None and current.code == code:
            return frame_key(current.compile_id)
        same = [key for key, one in self._frames.by_id.items() if one.code == code]
        return same[-1] if same else ""

    def _skipped_at_break(self, code: CodeRef, key: str, message: str) -> None:
        broken = self._breaks.last
        if broken is not None and broken.frame == code and self._breaks.last_key == key:
            self._write(
                code,
                "graph-break",
                broken.gb_type,
                gb_type=broken.gb_type,
                gb_id=broken.gb_id,
                because=self._breaks.last_id,
            )
            return
        root, _ = BreakTexts().root_and_wrappers(message)
        cause: SkipCause = "graph-break"
        if "generator" in root.gb_type:
            # A generator that an eager frame drives would not have been a frame of its own.
            cause = "harmless" if self._in_contextlib else "generator"
        self._write(code, cause, root.gb_type, gb_type=root.gb_type, gb_id=root.gb_id)

    def _failed(
        self, code: CodeRef, record: LogRecord, name: str, message: str, stack: tuple[Frame, ...]
    ) -> None:
        is_backend = name == "BackendCompilerFailed"
        backend = re.match(r"backend='([^']*)' raised", message)
        failed = CompileFailed(
            error=name,
            message=message[:_MOST_WORDS],
            backend=backend[1] if backend else None,
            frame=code,
        )
        because = self._console.event(
            self._process,
            failed,
            stack=self._stack(code) if is_backend or not stack else stack,
            compile_id=self._key_of(code) or None,
            time_ns=record.time_ns,
            epoch=self._frames.epoch,
        )
        self._write(code, "backend" if is_backend else "error", _SUPPRESSED_WORDS, because=because)

    def skipping(self, record: LogRecord) -> bool:
        """`skipping: f (reason: ..., file: ...)`, which names no line."""
        found = _SKIPPING.match(record.text)
        if found is None:
            return False
        reason = found["reason"]
        self._in_contextlib = found["file"].endswith("contextlib.py")
        if origin(found["file"]) == "torch" or reason.startswith(_SUPPRESSED):
            return True  # Told by the record before it, or no loss.
        cause = next((c for start, c in _CAUSES.items() if reason.startswith(start)), None)
        if cause is None and reason.startswith(_ASKED_FOR) and _NOTHING not in reason:
            cause = "backend"
        if cause is not None:
            code = self._named(found["file"], found["name"])
            self._write(code, cause, reason)
        return True

    def _named(self, file: str, name: str) -> CodeRef:
        current = self._frames.current
        code = self._frames.code(file, 0, name)
        if current is not None and (current.code.file, current.code.function) == (
            file,
            code.function,
        ):
            return current.code
        return code

    def loop(self, record: LogRecord) -> bool:
        """torch 2.9: `Skipping frame because there is a graph break in a for/while loop`."""
        if _LOOP not in record.title:
            return True  # Nothing to compile in it, say.
        compiled = self._frames.of(record.compile_id)
        if compiled is None or not compiled.kept:
            return True
        compiled.kept = False
        self._breaks.skipped(record.compile_id)
        self._breaks.flush()
        self._skipped_at_break(compiled.code, frame_key(record.compile_id), "graph break in loop")
        return True

    def _stack(self, code: CodeRef) -> tuple[Frame, ...]:
        current = self._frames.by_id.get(self._key_of(code)) or self._frames.current
        callers = current.callers if current is not None and current.code == code else ()
        return (*callers, frame_of(code))

    def _write(
        self,
        code: CodeRef,
        cause: SkipCause,
        reason: str,
        *,
        gb_type: str | None = None,
        gb_id: str | None = None,
        because: str | None = None,
    ) -> None:
        compiled = self._frames.by_id.get(self._key_of(code))
        self._console.event(
            self._process,
            FrameSkipped(code, cause, reason, gb_type, gb_id, because),
            stack=compiled.callers if compiled else (),
            epoch=self._frames.epoch,
        )


def read_error(lines: list[str]) -> tuple[str, str, tuple[Frame, ...]]:
    """The last exception of a printed traceback: its class, its message, the program's stack."""
    starts = [n for n, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    if not starts:
        return "", "", ()
    at = starts[-1] + 1
    while at < len(lines) and (not lines[at] or lines[at][0] in " \t"):
        at += 1
    found = _ERROR.match(lines[at]) if at < len(lines) else None
    if found is None:
        return (lines[at].strip() if at < len(lines) and _NAME.match(lines[at]) else ""), "", ()
    text = "\n".join([found["message"], *lines[at + 1 :]]).rstrip()
    message, _, below = text.partition(_FROM_USER)
    below = below.partition("\nSet TORCHDYNAMO_VERBOSE")[0]
    frames = recast(read_traceback(below.split("\n"))) if below else ()
    return found["name"], message.rstrip(), tuple(user_part(frames))


_START = b"Traceback (most recent call last):"
_INDENTED = (b" ", b"\t")
_CHAINED = (b"The above exception was the direct cause", b"During handling of the above exception")
_COMPILERS = ("torch._dynamo.", "torch._inductor.", "torch.fx.", "torch._functorch.")
# Chosen: bounds for memory: lines of a traceback, and letters of its message.
_MOST_LINES = 5000
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
