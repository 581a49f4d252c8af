"""tt-xla: loguru's lines and the MLIR module of every graph at every stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.logs.format import Format, LogSource, Writer

if TYPE_CHECKING:
    from compilescope.logs.text.tt import TtReader

_MARKS = (b"MLIR Module ", b"END OF MLIR MODULE", b"module_builder.cc:")


def _sniff(head: bytes) -> bool:
    return any(mark in head for mark in _MARKS)


def _reader(writer: Writer, source: LogSource) -> TtReader:
    # Where nothing but a structured trace is read, its patterns need not be compiled.
    from compilescope.logs.text.tt import TtReader

    return TtReader()


FORMAT = Format(
    id="tt-xla",
    title="tt-xla",
    sniff=_sniff,
    reader=_reader,
)
