"""TORCH_LOGS: what torch 2.9 and later write to the console or to TORCH_LOGS_OUT."""

from __future__ import annotations

import re

from compilescope.logs.format import Format
from compilescope.logs.text.dynamo.custom import MARKERS
from compilescope.logs.text.dynamo.reader import TorchLogsReader
from compilescope.logs.text.lines import TORCH

_LINE = re.compile(rb"^" + TORCH.pattern, re.M)


def _sniff(head: bytes) -> bool:
    return _LINE.search(head) is not None or any(marker in head for marker in MARKERS)


FORMAT = Format(
    id="torch-logs",
    title="TORCH_LOGS",
    sniff=_sniff,
    reader=lambda writer, source: TorchLogsReader(),
)
