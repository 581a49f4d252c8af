"""tt-xla: loguru's lines and the MLIR module of every graph at every stage."""

from __future__ import annotations

from compilescope.logs.format import Format
from compilescope.logs.text.tt.reader import TtReader

_MARKS = (b"MLIR Module ", b"END OF MLIR MODULE", b"module_builder.cc:")


def _sniff(head: bytes) -> bool:
    return any(mark in head for mark in _MARKS)


FORMAT = Format(
    id="tt-xla",
    title="tt-xla",
    sniff=_sniff,
    reader=lambda writer, source: TtReader(),
)
