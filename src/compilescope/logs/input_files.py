"""Opens what a user may name as a log, and gives its bytes in blocks of whole lines.

Files, folders, `.gz`, `.xz`, standard input, files that still grow. Memory stays bounded whatever a
source holds: a line longer than LONGEST_LINE keeps its beginning only, and a compressed file that
unpacks to absurdly much is left where that shows.
"""

from __future__ import annotations

import os
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from compilescope.base.errors import ToolError
from compilescope.base.patterns import late
from compilescope.logs.format import LogSource, ReadTally

BLOCK = 1 << 21
"""Bytes read at once. Chosen; benchmarks/text_logs.py reads in such blocks and shows the rate."""
LONGEST_LINE = 1 << 24
"""Bytes. Chosen: a bound for memory; the rest of a longer line is dropped, and told."""
MOST_FILES = 100_000
"""Of a folder. Chosen: a bound for a folder that is no folder of logs."""
STDIN = "-"
_RANK = late(r"rank_?(\d{1,9})(?!\d)")
_FREE_BYTES = 256 << 20
"""Unpacked, before its ratio counts. Chosen: what a reader can take in any case."""
_HIGHEST_RATIO = 400
"""A log that repeats itself a lot packs to a hundredth; bombs begin at a thousandth. Chosen between
the two."""
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


def log_files(paths: list[str]) -> tuple[list[str], list[str]]:
    """Every file that these name, folders searched, and a sentence for each that has none."""
    found: dict[str, None] = {}
    problems: list[str] = []
    for path in paths:
        if path == STDIN:
            found[path] = None
        elif os.path.isdir(path):
            inside = _files_under(path, problems)
            if not inside:
                problems.append(f"{path} contains no files.")
            found.update(dict.fromkeys(inside))
        elif os.path.exists(path):
            found[path] = None
        else:
            raise ToolError(f"There is no {path}.")
    return list(found), problems


def _files_under(folder: str, problems: list[str]) -> list[str]:
    def refuse(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}.")

    files: list[str] = []
    for base, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(base, name)
            # A pipe or a device would never end.
            if os.path.isfile(path):
                files.append(path)
        if len(files) > MOST_FILES:
            problems.append(
                f"{folder} contains more than {MOST_FILES} files; the rest are skipped."
            )
            return files[:MOST_FILES]
    return files


def source_of(name: str) -> LogSource:
    """The source called `name`, before anything of it is read."""
    if name == STDIN:
        return LogSource("-", time.time_ns())
    try:
        modified = os.stat(name).st_mtime_ns
    except OSError:
        modified = time.time_ns()
    found = _RANK.findall(os.path.basename(name))
    return LogSource(name, modified, rank=int(found[-1]) if found else None)


def _damage() -> tuple[type[Exception], ...]:
    """What reading a damaged file raises."""
    import lzma  # Asked for when something is raised: most logs are packed in no way.

    return EOFError, OSError, zlib.error, lzma.LZMAError, ValueError


class Opened:
    """One source as a stream of bytes, unpacked where it is packed."""

    def __init__(self, name: str, tally: ReadTally) -> None:
        """Raises OSError where it cannot be opened."""
        self._tally = tally
        self._packed: BinaryIO | None = None
        if name == STDIN:
            raw = cast(BinaryIO, sys.stdin.buffer)
        else:
            raw = open(name, "rb", buffering=0)  # noqa: SIM115 - closed by `close`.
            if stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
                head = raw.read(6)
                raw.seek(0)
                if head.startswith(_GZIP):
                    import gzip

                    self._packed, raw = raw, cast(BinaryIO, gzip.GzipFile(fileobj=raw))
                elif head.startswith(_XZ):
                    import lzma

                    self._packed, raw = raw, cast(BinaryIO, lzma.LZMAFile(raw))  # noqa: SIM115
        self._raw = raw
        self.given = 0
        """Bytes handed out."""

    @property
    def done(self) -> int:
        """Bytes of the file itself that have been read."""
        try:
            return (self._packed or self._raw).tell()
        except (OSError, ValueError):
            return self.given

    def read(self) -> bytes:
        """The next bytes; none at the end, and where no more can be read."""
        try:
            data = self._raw.read(BLOCK)
        except _damage() as error:
            self._tally.problems.append(f"It could not be read past {self.given:,} bytes: {error}.")
            self._tally.cut_tail = True
            return b""
        if data and self._packed is not None and self.given > _FREE_BYTES:
            packed = self._packed.tell() or 1
            if self.given > packed * _HIGHEST_RATIO:
                self._tally.problems.append(
                    f"It unpacks to more than {_HIGHEST_RATIO} times its size; everything "
                    f"after the first {self.given:,} bytes was skipped."
                )
                self._tally.cut_tail = True
                return b""
        self.given += len(data or b"")
        return data or b""

    def close(self) -> None:
        if self._raw is not getattr(sys.stdin, "buffer", None):
            self._raw.close()
        if self._packed is not None:
            self._packed.close()


class LogLines:
    """Cuts a stream into blocks of whole lines; lines that are too long lose their end."""

    def __init__(self, tally: ReadTally) -> None:
        self._tally = tally
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._skipping = False
        """Within a line of which enough has been seen."""

    def add(self, data: bytes) -> bytes:
        """The whole lines that are there now."""
        if self._skipping:
            end = data.find(b"\n")
            if end < 0:
                return b""
            self._skipping = False
            data = data[end + 1 :]
        cut = data.rfind(b"\n") + 1
        if not cut:
            self._keep(data)
            if self._rest_size > LONGEST_LINE:
                self._skipping = True
                self._tally.cut_lines += 1
                line = b"".join(self._rest)[:LONGEST_LINE] + b"\n"
                self._keep(None)
                return line
            return b""
        block = b"".join((*self._rest, data[:cut])) if self._rest else data[:cut]
        self._keep(None)
        if cut < len(data):
            self._keep(data[cut:])
        return block

    def end(self) -> bytes:
        """What has no newline after it."""
        rest = b"".join(self._rest)
        self._keep(None)
        return rest

    def _keep(self, data: bytes | None) -> None:
        if data is None:
            self._rest, self._rest_size = [], 0
        else:
            self._rest.append(data)
            self._rest_size += len(data)


def blocks(opened: Opened, tally: ReadTally) -> Iterator[bytes]:
    """A source from its beginning to its end."""
    lines = LogLines(tally)
    while data := opened.read():
        block = lines.add(data)
        if block:
            yield block
    rest = lines.end()
    if rest:
        yield rest
