"""The frames that one process compiles: code objects by compile id, their callers and regions.

Also whose code a file is: what lies between the program and its compiler (torch, torch_xla,
Tenstorrent's overrides) is the compiler's own, and no line of it is one that the program's author
can change.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from compilescope.base.texts import whole_number
from compilescope.logs.text.dynamo.record import LogRecord, frame_key
from compilescope.logs.words.tracebacks import read_traceback, user_part
from compilescope.record.guards import WholeFiles
from compilescope.record.stack import CodeRef, Frame, Origin, origin_of, plain_function_name

_COMPILERS = re.compile(
    r"(?:^|[/\\])(?:tt_torch|torch_xla|torch_plugin_tt|torch_xla2|torchax)[/\\]"
    # A torch that was built in place, or whose root a log has taken off.
    r"|(?:^|[/\\])torch[/\\](?:_dynamo|_functorch|_inductor|_ops|_library|_subclasses|_higher_order"
    r"_ops|_compile|_tensor|nn[/\\](?:modules|functional)|fx|utils|autograd|optim|overrides)\b"
)


@functools.lru_cache(maxsize=8192)
def origin(file: str) -> Origin:
    if _COMPILERS.search(file):
        return "torch"
    return origin_of(file)


def is_override(file: str) -> bool:
    """Does every operator of the program run through it, though the program does not name it?"""
    return origin(file) == "torch" and origin_of(file) != "torch" and "/torch/" not in file


def recast(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    return tuple([_recast(frame) for frame in frames])


def _recast(frame: Frame) -> Frame:
    own = origin(frame.file)
    return frame if frame.origin == own else msgspec.structs.replace(frame, origin=own)


def is_program(frame: Frame) -> bool:
    return frame.origin in ("user", "library")


_START = re.compile(
    r"torchdynamo start compiling (?P<name>\S+) (?P<file>.+):(?P<line>\d{1,9}), stack"
)
_TRACE = re.compile(
    r"Step 1: torchdynamo start tracing (?P<name>\S+) (?P<file>.+):(?P<line>\d{1,9})"
)
_MOST = 50_000
"""Code objects remembered; a log of more than that repeats itself. Chosen: a bound for memory."""
_MOST_EARLIER = 1000
"""Compilations of one frame among which an earlier one is looked for. Chosen: a bound for time."""


@dataclass
class Compiled:
    """One compilation of one frame."""

    code: CodeRef
    compile_id: str | None
    start_ns: int
    callers: tuple[Frame, ...] = ()
    region: CodeRef | None = None
    """The function at which compiled code was entered; None where it is this one, or unknown."""
    end_ns: int = 0
    kept: bool = True
    """It left something to be used again, as far as the log tells."""
    restarts: list[str] = field(default_factory=list)
    guards: int | None = None
    epoch: int = 0

    @property
    def entered(self) -> CodeRef:
        """The function at which compiled code was entered, as far as the log tells: the rest of
        one was entered with its beginning."""
        return self.region or CodeRef(self.code.file, self.code.line, self.code.function)


class Frames:
    """What is compiled now and what has been."""

    def __init__(self) -> None:
        self.current: Compiled | None = None
        self.by_id: dict[str, Compiled] = {}
        self._times: dict[str, list[int]] = {}
        """By a frame's number: which of its compilations are known, in order."""
        self.epoch = 0
        self.files: dict[str, None] = {}
        """Whole names of the program's files."""
        self.whole_files = WholeFiles(self.files)
        self._firsts: dict[tuple[str, str], set[int]] = {}
        self._entries: dict[tuple[tuple[str, int, str], ...], CodeRef] = {}

    def code(self, file: str, line: int, name: str) -> CodeRef:
        """The code object as its author knows it: a resume function is the one it resumes."""
        plain = plain_function_name(name)
        if len(self.files) < _MOST:
            self.files[file] = None
        if plain == name:
            firsts = self._firsts.setdefault((file, name), set())
            if len(self._firsts) < _MOST and len(firsts) < _MOST:
                firsts.add(line)
            return CodeRef(file, line, name)
        before = [first for first in self._firsts.get((file, plain), ()) if first <= line]
        return CodeRef(file, max(before, default=line), plain, resumed_at=line)

    def started(self, record: LogRecord) -> Compiled | None:
        """A compilation begins, by the record that says so; None where it is not a new one."""
        found = _START.match(record.title) or _TRACE.match(record.title)
        if found is None:
            return None
        key = frame_key(record.compile_id)
        code = self.code(found["file"], int(found["line"]), found["name"])
        known = self.by_id.get(key) if key else self.current
        is_start = found.re is _START
        if known is not None and not is_start and known.code == code:
            return None
        if known is not None and is_start and key:
            self._reset()
        compiled = Compiled(code, record.compile_id, record.time_ns, end_ns=record.time_ns)
        compiled.epoch = self.epoch
        if is_start:
            frames = recast(read_traceback(record.lines()))
            compiled.callers = tuple(frame for frame in user_part(frames) if is_program(frame))
            if len(self.files) < _MOST:
                self.files.update((frame.file, None) for frame in compiled.callers)
            compiled.region = self._region(frames, code)
        self.current = compiled
        if key and len(self.by_id) < _MOST:
            if key not in self.by_id:
                self._note_time(key)
            self.by_id[key] = compiled
        return compiled

    def _note_time(self, key: str) -> None:
        number, _, times = key.rpartition("/")
        known = whole_number(times)
        if known is not None and known < _MOST_EARLIER and str(known) == times:
            insort(self._times.setdefault(number, []), known)

    def _reset(self) -> None:
        """An id that comes again: `torch._dynamo.reset()` let them start anew."""
        self.epoch += 1
        self.by_id.clear()
        self._times.clear()

    def of(self, compile_id: str | None) -> Compiled | None:
        key = frame_key(compile_id)
        return self.by_id.get(key) if key else self.current

    def earlier(self, compile_id: str | None) -> list[Compiled]:
        """Compilations of the same frame before this one."""
        number, _, times = frame_key(compile_id).rpartition("/")
        known = self._times.get(number, [])
        before = known[: bisect_left(known, whole_number(times) or 0)]
        return [self.by_id[f"{number}/{each}"] for each in before]

    def _region(self, frames: Sequence[Frame], code: CodeRef) -> CodeRef | None:
        """The function at which compiled code was entered; None where it is this one.

        The innermost callers are left out of the log's stack, and always equally many: what is
        compiled below an entry has the entry's own stack and more.
        """
        places = tuple((frame.file, frame.line, frame.function) for frame in frames)
        for length in range(1, len(places)):
            entry = self._entries.get(places[:length])
            if entry is not None:
                return entry
        if not code.resumed and places and len(self._entries) < _MOST:
            self._entries[places] = code
        return None
