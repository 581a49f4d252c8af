"""torch_xla: the blocks of PT_XLA_DEBUG_LEVEL, the extras of PT_XLA_DEBUG, and dumps of HLO."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compilescope.logs.format import Format, LogSource, Writer

if TYPE_CHECKING:
    from compilescope.logs.text.xla.reader import XlaReader


def _sniff(head: bytes) -> bool:
    from compilescope.logs.text.xla.blocks import PREFIX
    from compilescope.logs.text.xla.reader import XlaReader

    if any(marker in head for marker in XlaReader.markers[1:]):
        return True
    return re.search(PREFIX.pattern, head, re.M) is not None


def _reader(writer: Writer, source: LogSource) -> XlaReader:
    # Where nothing but a structured trace is read, its patterns need not be compiled.
    from compilescope.logs.text.xla.reader import XlaReader

    return XlaReader()


FORMAT = Format(
    id="torch-xla",
    title="torch_xla",
    sniff=_sniff,
    reader=_reader,
)
