"""The guards of each cache entry, and the recompiles that follow when one of them fails.

Recompiles that the artifact `recompiles` reports come with their guards; those that only compile
ids imply are marked as inferred.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.frames import Compiled, Frames
from compilescope.logs.text.dynamo.record import LogRecord, frame_key
from compilescope.logs.text.lines import plain
from compilescope.logs.words.failed_guards import GuardFacts, explained, facts_of
from compilescope.logs.words.recompile_words import read_reason
from compilescope.record.bodies import CacheEntryMiss, Guard, GuardSet, Recompile
from compilescope.record.guards import KIND, WholeFiles, count_kinds, read_guard_tree
from compilescope.record.stack import CodeRef, Frame

_TITLE = re.compile(
    r"Recompiling function (?P<name>\S{1,300}) in (?P<file>.{1,1000}):(?P<line>\d{1,9})\s*$"
)
_ENTRY = re.compile(r"^\s*(?:- )+(?=!?\d+/\d+(?:/\d+)?(?:_\d+)?: )")
_LIMIT = re.compile(
    r"torch\._dynamo hit config\.(?P<limit>\w{1,100}) \((?P<value>[^)]{0,100})\)[ \t]*\n"
    r"\s{0,80}function: '(?P<name>[^']{0,300})' \((?P<file>.{1,1000}?):(?P<line>\d{1,9})\)[ \t]*\n"
    r"\s{0,80}last reason: (?P<reason>.*?)(?:\nTo log all|\Z)",
    re.S,
)
_SYMBOL = re.compile(r"create_symbol \w+ = (?P<value>-?[\d.]+) for (?P<source>\S+)")
# Chosen: bounds for memory; the oldest texts of guards go first.
_MOST_INFERRED = 10_000
_MOST_SYMBOLS = 10_000
_MOST_TREE_BYTES = 16 << 20
_MOST_READ = 4


@dataclass
class _Held:
    body: Recompile
    stack: tuple[Frame, ...]
    compile_id: str | None
    time_ns: int
    epoch: int


class Trees:
    """The guards of the compilations seen last, as text; memory is bounded."""

    def __init__(self, files: Iterable[str]) -> None:
        """`files`: whole names of those that guards name by their ends."""
        self._files = files
        self._texts: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._read: OrderedDict[bytes, list[Guard]] = OrderedDict()

    def keep(self, key: str, text: bytes) -> None:
        self._size += len(text) - len(self._texts.pop(key, b""))
        self._texts[key] = text
        while self._size > _MOST_TREE_BYTES and self._texts:
            _, old = self._texts.popitem(last=False)
            self._size -= len(old)

    def get(self, key: str) -> bytes:
        return self._texts.get(key, b"")

    def read(self, text: bytes) -> list[Guard]:
        """The guards in a text; those of the last few are still there."""
        found = self._read.get(text)
        if found is None:
            found = self._read[text] = read_guard_tree(plain(text), self._files)
            while len(self._read) > _MOST_READ:
                self._read.popitem(last=False)
        return found


class Recompiles:
    """The recompiles of one process."""

    def __init__(self, console: Console, process: ConsoleProcess, frames: Frames) -> None:
        self._console = console
        self._process = process
        self._frames = frames
        self._held: _Held | None = None
        self._inferred: list[_Held] = []
        self.reported = False
        """The artifact was on."""
        self.limited: set[CodeRef] = set()
        """Code objects that ran into the limit."""
        self._compiling: _Held | None = None
        """One whose new guards are still to come: they tell which values had changed."""
        self._trees = Trees(frames.files)
        self._symbols: dict[str, str] = {}

    def told(self, record: LogRecord) -> bool:
        found = _TITLE.match(record.title)
        if found is None:
            return False
        self.flush()
        self.reported = True
        code = self._frames.code(found["file"], int(found["line"]), found["name"])
        entries = tuple(_entries(record.lines(), self._frames.whole_files))
        self._held = self._holding(Recompile(code, entries), record)
        return True

    def symbol(self, record: LogRecord) -> bool:
        """`create_symbol s77 = 3 for L['x'].size()[0] ...`: the value of what is symbolic now."""
        found = _SYMBOL.match(record.title)
        if found is not None and len(self._symbols) < _MOST_SYMBOLS:
            self._symbols[found["source"]] = found["value"]
        return True

    def guarded(self, compile_id: str | None, tree: bytes) -> None:
        """The guards of a compilation that has succeeded."""
        key = frame_key(compile_id)
        if not key:
            return
        held = self._compiling
        if held is not None and frame_key(held.compile_id) == key:
            facts = facts_of(self._trees.read(tree), self._symbols)
            entries = tuple(self._explained(entry, facts) for entry in held.body.entries)
            held.body = msgspec.structs.replace(held.body, entries=entries)
            self._write_compiling()
        self._trees.keep(key, tree)

    def _explained(self, entry: CacheEntryMiss, facts: GuardFacts) -> CacheEntryMiss:
        old = self._trees.get(frame_key(entry.compile_id))
        if not old:
            return entry
        return explained(entry, self._trees.read(old), facts)

    def _write_compiling(self) -> None:
        held, self._compiling = self._compiling, None
        if held is not None:
            self._write(held)

    def hit_limit(self, record: LogRecord) -> CodeRef | None:
        """torch gives the frame up; its warning needs no flag."""
        found = _LIMIT.search(record.text)
        if found is None:
            return None
        code = self._frames.code(found["file"], int(found["line"]), found["name"])
        self.limited.add(code)
        held = self._held
        if held is not None and frame_key(held.compile_id) == frame_key(record.compile_id):
            held.body = msgspec.structs.replace(held.body, refused="limit")
        else:
            entry = read_reason(found["reason"])
            body = Recompile(code, (entry,) if entry else (), refused="limit")
            self._held = self._holding(body, record)
        self.flush()
        return code

    def _holding(self, body: Recompile, record: LogRecord) -> _Held:
        earlier = self._frames.earlier(record.compile_id)
        stack = earlier[-1].callers if earlier else ()
        return _Held(body, stack, record.compile_id, record.time_ns, self._frames.epoch)

    def started(self, compiled: Compiled) -> None:
        """A compilation begins. Is it one of a frame that had been compiled?"""
        key = frame_key(compiled.compile_id)
        held = self._held
        if held is not None and (not key or frame_key(held.compile_id) == key):
            held.stack = compiled.callers or held.stack
            self._write_compiling()
            self._compiling, self._held = held, None
            self._symbols.clear()
            return
        self.flush()
        self._symbols.clear()
        if self.reported or len(self._inferred) >= _MOST_INFERRED:
            return
        before = [one for one in self._frames.earlier(compiled.compile_id) if one.kept]
        unseen = key and not key.endswith("/0") and not self._frames.earlier(compiled.compile_id)
        if before or unseen:
            entries = tuple(CacheEntryMiss(frame_key(one.compile_id)) for one in reversed(before))
            body = Recompile(compiled.code, entries, inferred=True)
            self._inferred.append(
                _Held(
                    body,
                    compiled.callers,
                    compiled.compile_id,
                    compiled.start_ns,
                    self._frames.epoch,
                )
            )

    def flush(self) -> None:
        self._write_compiling()
        held, self._held = self._held, None
        if held is None:
            return
        if self._frames.current is not None and not held.body.refused:
            # The log says when a compilation begins, and this one never did.
            held.body = msgspec.structs.replace(held.body, refused="error")
        self._write(held)

    def finish(self) -> None:
        self.flush()
        # Where recompiles are reported at all, one without a report was none: the compilation
        # before it had left nothing.
        if not self.reported:
            for held in self._inferred:
                self._write(held)
        self._inferred = []

    def _write(self, held: _Held) -> None:
        self._console.event(
            self._process,
            held.body,
            stack=held.stack,
            compile_id=held.compile_id,
            time_ns=held.time_ns,
            epoch=held.epoch,
        )


def _entries(lines: list[str], files: WholeFiles) -> Iterable[CacheEntryMiss]:
    """One for each earlier compilation; `recompiles_verbose` gives several lines to each."""
    found: list[list[str]] = []
    for line in lines:
        start = _ENTRY.match(line)
        if start:
            found.append([line[start.end() :]])
        elif found and line.strip() and not line.strip().startswith("guard "):
            found[-1].append(re.sub(r"^\s*(?:- )?", "", line))
    for group in found:
        entry = read_reason("\n".join(group), files)
        if entry is not None:
            yield entry


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
