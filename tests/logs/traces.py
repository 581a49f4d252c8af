"""Small traces for tests: golden ones, and records put together by hand."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compilescope.logs.format import LogSource
from compilescope.logs.reader import Chain, log_header
from compilescope.logs.run_writer import RunWriter
from compilescope.logs.trace.reader import TraceReader
from compilescope.record.header import write_header
from compilescope.record.run import Run, read_run

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> bytes:
    return lzma.decompress((GOLDEN / f"torch_trace_{name}.log.xz").read_bytes())


def record(
    kind: str,
    fields: Any = None,
    payload: str | None = None,
    *,
    second: int = 1,
    pid: int = 4242,
    frame: int | None = 0,
    compile: int = 0,
    **envelope: Any,
) -> bytes:
    """One record as torch writes it."""
    line: dict[str, Any] = {kind: {} if fields is None else fields}
    if frame is not None:
        line |= {"frame_id": frame, "frame_compile_id": compile, "attempt": 0}
    line |= envelope
    if payload is not None:
        line["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    text = f"V1115 {clock}.250000 {pid} torch/_dynamo/x.py:12] {json.dumps(line)}\n"
    if payload is not None:
        text += "".join(f"\t{row}\n" for row in payload.split("\n"))
    return text.encode()


def read_bytes(data: bytes, folder: Path, *, cuts: Sequence[int] = ()) -> tuple[Run, LogSource]:
    """The run that these bytes become; they are fed in pieces that end at `cuts`."""
    source = LogSource("trace.log", 1_800_000_000 * 10**9)
    folder.mkdir(parents=True)
    writer = RunWriter(folder)
    chain = Chain([TraceReader(writer, source)])
    start = 0
    for cut in (*cuts, len(data)):
        chain.feed(data[start:cut])
        start = cut
    chain.finish()
    writer.close()
    write_header(folder, log_header("abc123-log", ["trace.log"], ""))
    return read_run(folder), source
