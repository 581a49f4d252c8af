"""TORCH_LOGS: what torch 2.9 and later write to the console or to TORCH_LOGS_OUT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.logs.format import Format, LogSource, Writer

if TYPE_CHECKING:
    from compilescope.logs.text.dynamo.reader import TorchLogsReader


def _reader(writer: Writer, source: LogSource) -> TorchLogsReader:
    # Where nothing but a structured trace is read, its patterns need not be compiled.
    from compilescope.logs.text.dynamo.reader import TorchLogsReader

    return TorchLogsReader()


FORMAT = Format("torch-logs", _reader)
