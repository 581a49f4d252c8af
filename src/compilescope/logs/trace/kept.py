"""Records that become no event of their own: kept as they are, many in one artifact."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compilescope.logs.trace.record import Record
from compilescope.model.traced import TraceRecords

if TYPE_CHECKING:
    from compilescope.logs.trace.process import TracedProcess

_BYTES = 1 << 18
_BYTECODE = re.compile(r"^.+_(ORIGINAL|MODIFIED)_BYTECODE(?:_\w+)?$", re.S)
_LONGEST_NAME = 100


class Kept:
    """The records of one process that wait to be written."""

    def __init__(self, process: TracedProcess) -> None:
        self._process = process
        self._lines: list[bytes] = []
        self._size = 0
        self._kinds: dict[str, int] = {}
        self._last: Record | None = None

    def add(self, record: Record, name: str, kind: str | None = "txt") -> None:
        """With its payload, unless another event has that."""
        if self._last is not None and self._last.compilation != record.compilation:
            self.flush()
        payload = self._process.payload(record, kind) if kind and record.payload else ""
        self._lines.append(b'{"payload":"%s","record":%s}' % (payload.encode(), record.json))
        self._size += len(record.json)
        name = short_name(name)
        self._kinds[name] = self._kinds.get(name, 0) + 1
        self._last = record
        if self._size > _BYTES:
            self.flush()

    def count(self, name: str, count: int, record: Record) -> None:
        """Records of which only the number is kept."""
        self._kinds[name] = self._kinds.get(name, 0) + count
        self._last = record

    def flush(self) -> None:
        if self._last is None:
            return
        process = self._process
        artifact = (
            process.writer.artifact(b"\n".join(self._lines), "jsonl") if self._lines else None
        )
        process.emit(self._last, TraceRecords(self._kinds, artifact), attempt=False)
        self._lines, self._size, self._kinds, self._last = [], 0, {}, None


def short_name(name: str) -> str:
    """Bytecode is named for the user's function; which one, its record tells."""
    found = _BYTECODE.match(name)
    return f"{found[1]}_BYTECODE" if found else name[:_LONGEST_NAME]
