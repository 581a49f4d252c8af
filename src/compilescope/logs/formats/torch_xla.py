"""torch_xla: the blocks of PT_XLA_DEBUG_LEVEL, the extras of PT_XLA_DEBUG, and dumps of HLO."""

from __future__ import annotations

import re

from compilescope.logs.format import Format
from compilescope.logs.text.xla.blocks import PREFIX
from compilescope.logs.text.xla.reader import XlaReader

_LINE = re.compile(PREFIX.pattern, re.M)


def _sniff(head: bytes) -> bool:
    if any(marker in head for marker in XlaReader.markers[1:]):
        return True
    return _LINE.search(head) is not None


FORMAT = Format(
    id="torch-xla",
    title="torch_xla",
    sniff=_sniff,
    reader=lambda writer, source: XlaReader(),
)
