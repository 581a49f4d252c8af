"""Reads console text: whatever mix of writers and processes, one pass, memory bounded.

Blocks are cleaned and cut into lines as a whole, and lines of noise are dropped before anything
looks at them one by one; a format looks at a block only where one of its markers is in it. So
gigabytes of trace lines cost about what cutting them costs.

What it asks of the reader of a format is `TextReader`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeGuard, runtime_checkable

from compilescope.logs.format import LogSource, Reader, Writer
from compilescope.logs.formats import all_formats
from compilescope.logs.text.console import Console
from compilescope.logs.text.lines import NUMBERED, TAGS, UNTAGGED, Tag, cleaned, plain, read_tags


class TextReader(Protocol):
    """One format's state in one log. It may be handed any line at all, in any order."""

    noise: tuple[bytes, ...]
    """Lines that hold one of these tell nothing, to no reader; they are never handed out."""
    markers: tuple[bytes, ...]
    """Where a block holds none of these, and the reader is not in the middle of something, its
    lines are not for it."""

    def attach(self, console: Console) -> None:
        """Called once, before the first line."""
        ...

    def skipped(self, lines: int) -> None:
        """Told of the noise that was left out."""
        ...

    @property
    def busy(self) -> bool:
        """In the middle of something that spans lines."""
        ...

    def line(self, line: bytes, tag: Tag) -> bool:
        """Take a line without its tags; False where it is not of this format."""
        ...

    def run(self, lines: Sequence[bytes], start: int) -> int:
        """Take as many untagged lines from `start` on as go on with what is open: the first that
        does not. For bodies of thousands of lines."""
        ...

    def finish(self) -> None:
        """The log has ended: write what is still open, and what was counted."""
        ...


@runtime_checkable
class Stamper(Protocol):
    """The reader of lines that carry a prefix which names their process."""

    heads: set[bytes]
    """How the prefixes seen so far begin: six bytes of each."""

    def run_stamped(self, lines: Sequence[bytes], start: int) -> int:
        """Take lines by their prefix, tags and all, from `start` on: the first that has none."""
        ...


class NoStamper:
    """Where no format has such lines."""

    def __init__(self) -> None:
        self.heads: set[bytes] = set()

    def run_stamped(self, lines: Sequence[bytes], start: int) -> int:
        return start


_TAG_STARTS = b"[("
_TAG_STARTS_BYTES = (b"[", b"(")
_DIGITS = b" 0123456789"
_STAMPED = b".py:"
"""What every line with torch's prefix holds."""
_MODULE = b"\n    %"
_INNER = frozenset((b"  ", b"#l", b"}", b"} "))
"""How lines begin that are in the middle of something, never its beginning."""
_STAMP_STARTS = frozenset(bytes([byte]) for byte in b"VIWEC[( 0123456789")
# Chosen: bounds for logs of any content; the beginning of a line has all that tells its writer.
_MOST_TAGS = 4096
_LONGEST_HEAD = 400
_PREFIX_BYTES = 240
"""Within these the mark of a noisy line stands. Chosen: prefixes of launchers and collectors stand
before it."""
_LABELLED = re.compile(
    rb"\d{4}-\d\d-\d\d \d\d:|(?:Compilation|Execution) Analysis: |[VIWEC]\d{4} \d\d:\d\d"
)
"""What shows that a number before it is `srun --label`'s."""
_FIRST_STAMP = re.compile(
    rb"^(?:\S{0,40} ?)?[VIWEC](\d{4}) (\d\d:\d\d:\d\d\.\d{6}) \d+ \S+:\d+\]", re.M
)
_CUT_LINE = re.compile(
    rb"(?:\[rank\d+\]:)?(?:[VIWEC]\d{4} \d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \()"
    rb"|(?:Post )?(?:Compilation|Execution) Analysis"
)
"""A line of a writer that ends all of its lines."""


def text_reader(writer: Writer, source: LogSource) -> Reader:
    readers = [form.reader(writer, source) for form in all_formats() if form.begins is None]
    return TextEngine(Console(writer, source), readers)


_stampers: dict[type, bool] = {}


def _is_stamper(reader: TextReader) -> TypeGuard[Stamper]:
    """To compare a reader with a protocol takes longer than to read a short log."""
    kind = type(reader)
    if kind not in _stampers:
        _stampers[kind] = isinstance(reader, Stamper)
    return _stampers[kind]


class TextEngine:
    """The state of reading one console log."""

    def __init__(self, console: Console, readers: list[TextReader]) -> None:
        self._console = console
        self._readers = readers
        for reader in readers:
            reader.attach(console)
        self._stamper = next(filter(_is_stamper, readers), NoStamper())
        self._tags: dict[bytes, Tag] = {}
        self._numbered = False
        self._last = b""
        self._open_end = False
        """The log's last line has no newline."""

    def feed(self, block: bytes) -> bytes:
        self._console.begin(block)
        block = cleaned(block)
        lines = block.split(b"\n")
        self._open_end = bool(lines[-1])
        if not lines[-1]:
            lines.pop()
        if not lines:
            return b""
        self._last = lines[-1][:_LONGEST_HEAD]
        if self._console.tally.lines == 0:
            self._console.first_ns = self._first_time(block)
            self._console.tally.command = command_in(block)
        self._console.tally.lines += len(lines)
        kept = lines
        for mark in [m for reader in self._readers for m in reader.noise if m in block]:
            kept = [line for line in kept if line.find(mark, 0, _PREFIX_BYTES) < 0]
        if len(kept) < len(lines):
            for reader in self._readers:
                reader.skipped(len(lines) - len(kept))
        if kept:
            self._read(kept, block)
        return b""

    def finish(self) -> bytes:
        busy = any(reader.busy for reader in self._readers)
        for reader in self._readers:
            reader.finish()
        for process in self._console.processes():
            self._console.settle(process)
        tally = self._console.tally
        if self._open_end and (busy or _CUT_LINE.match(self._last)):
            tally.cut_tail = True
        self._tell_interleaving()
        return b""

    def _first_time(self, block: bytes) -> int:
        found = _FIRST_STAMP.search(block)
        if found is None:
            return 0
        return self._console.clock.torch_ns(found[1], found[2]) or 0

    def _tell_interleaving(self) -> None:
        tally = self._console.tally
        if tally.interleaved:
            return
        if self._console.crowded:
            # Lines that name no process, between those of several.
            tally.interleaved = "ambiguous"
        elif len(self._console.processes()) > 1:
            tally.interleaved = "tagged"

    def _read(self, lines: list[bytes], block: bytes) -> None:
        stamper = self._stamper
        readers = self._active(lines, block)
        if not readers:
            if _STAMPED not in block:
                return
            # A program's own output, mostly: only what may have a prefix is looked at.
            lines = [line for line in lines if line[:1] in _STAMP_STARTS]
        runner: TextReader | None = next((r for r in readers if r.busy), None)
        at, end = 0, len(lines)
        while at < end:
            if runner is not None:
                at = runner.run(lines, at)
                if at >= end:
                    return
                runner = None
            taken = stamper.run_stamped(lines, at)
            if taken > at:
                at = taken
                continue
            line = lines[at]
            at += 1
            if readers:
                rest, tag = self._untagged(line) if line else (line, UNTAGGED)
                runner = self._offer(readers, rest, tag)

    def _active(self, lines: list[bytes], block: bytes) -> list[TextReader]:
        """The readers for which there may be something in lines without torch's prefix."""
        text = block
        if _STAMPED in block or _MODULE in block:
            # Torch's own lines or a module's are most of it: the rest is much faster to search.
            heads = self._stamper.heads
            text = b"\n".join([ln for ln in lines if ln[:2] not in _INNER and ln[:6] not in heads])
        return [r for r in self._readers if r.busy or any(mark in text for mark in r.markers)]

    def _offer(self, readers: list[TextReader], line: bytes, tag: Tag) -> TextReader | None:
        """Hand the line out; the reader that may go on with the lines after it."""
        for reader in readers:
            if reader.line(line, tag):
                return reader if reader.busy and tag is UNTAGGED else None
        return None

    def _untagged(self, line: bytes) -> tuple[bytes, Tag]:
        if line[0] in _TAG_STARTS:
            found = TAGS.match(line)
        elif self._numbered or line[0] in _DIGITS:
            found = NUMBERED.match(line)
            if found is not None and not self._numbered:
                self._numbered = _LABELLED.match(line, found.end()) is not None
                found = found if self._numbered else None
        else:
            return line, UNTAGGED
        if found is None:
            return line, UNTAGGED
        text = found[0]
        tag = self._tags.get(text)
        if tag is None:
            tag = read_tags(text)
            if not tag.text:
                tag = tag._replace(text=text.strip())
            if self._numbered and tag.rank is None and found[0][:1] not in _TAG_STARTS_BYTES:
                tag = tag._replace(rank=int(found[1]))
            if len(self._tags) < _MOST_TAGS:
                self._tags[text] = tag
        return line[found.end() :], tag


_HEAD = 1 << 16
"""Bytes of a log in which its command is looked for. Chosen: it stands at the beginning."""
_COMMAND = re.compile(
    rb"^(?:\+{1,4}|\$|[^\s$#]{1,80}@[^\s$#]{1,80}[^$#\n]{0,200}[$#]"
    rb"|\([\w.-]{1,40}\) [^$#\n]{0,200}[$#])"
    rb"[ \t]+(?P<command>(?:[A-Za-z_]\w{0,80}=\S*[ \t]+)*"
    rb"(?:env[ \t]+(?:[A-Za-z_]\w{0,80}=\S*[ \t]+)*)?"
    rb"(?:[^\s;|&]{0,300}/)?(?:python[\d.]*|torchrun|pytest|accelerate|mpirun|srun)"
    rb"[ \t]+[^\n]{1,1000})$",
    re.M,
)
_OUTPUT = re.compile(r"(?<!\s)\s*(?:\d?>>?|&>>?|\|).*")


def command_in(head: bytes) -> str:
    """As it was typed, without what it does with its output; empty where the log has none."""
    found = _COMMAND.search(head[:_HEAD])
    return _OUTPUT.sub("", plain(found["command"]).strip()) if found is not None else ""
