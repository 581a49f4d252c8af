"""TORCH_TRACE: torch's structured trace, one file a process."""

from __future__ import annotations

from compilescope.logs.format import Format
from compilescope.logs.trace.reader import TraceReader
from compilescope.logs.trace.record import HEAD


def _holds_records(head: bytes) -> bool:
    return HEAD.search(head) is not None


FORMAT = Format("torch_trace", TraceReader, begins=_holds_records)
