"""TORCH_LOGS: what torch 2.9 and later write to the console or to TORCH_LOGS_OUT."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compilescope.logs.format import Format, LogSource, Writer

if TYPE_CHECKING:
    from compilescope.logs.text.dynamo.reader import TorchLogsReader


def _sniff(head: bytes) -> bool:
    from compilescope.logs.text.dynamo.custom import MARKERS
    from compilescope.logs.text.lines import TORCH

    stamped = re.search(rb"^" + TORCH.pattern, head, re.M)
    return stamped is not None or any(marker in head for marker in MARKERS)


def _reader(writer: Writer, source: LogSource) -> TorchLogsReader:
    # Where nothing but a structured trace is read, its patterns need not be compiled.
    from compilescope.logs.text.dynamo.reader import TorchLogsReader

    return TorchLogsReader()


FORMAT = Format(
    id="torch-logs",
    title="TORCH_LOGS",
    sniff=_sniff,
    reader=_reader,
)
