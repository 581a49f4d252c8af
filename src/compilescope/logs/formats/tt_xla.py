"""tt-xla: loguru's lines and the MLIR module of every graph at every stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.logs.format import Format, LogSource, Writer

if TYPE_CHECKING:
    from compilescope.logs.text.tt import TtReader


def _reader(writer: Writer, source: LogSource) -> TtReader:
    # Where nothing but a structured trace is read, its patterns need not be compiled.
    from compilescope.logs.text.tt import TtReader

    return TtReader()


FORMAT = Format("tt-xla", _reader)
