"""torch_xla: the blocks of PT_XLA_DEBUG_LEVEL, the extras of PT_XLA_DEBUG, and dumps of HLO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.logs.format import Format, LogSource, Writer

if TYPE_CHECKING:
    from compilescope.logs.text.xla.reader import XlaReader


def _reader(writer: Writer, source: LogSource) -> XlaReader:
    # Where nothing but a structured trace is read, its patterns need not be compiled.
    from compilescope.logs.text.xla.reader import XlaReader

    return XlaReader()


FORMAT = Format("torch-xla", _reader)
