"""How fast console logs are read into a run, on one core, and in how much memory.

    python benchmarks/text_logs.py [--mb 2000] [--only trace,dynamo,tt,xla,output] [--json]

Logs are made up of the lines of real ones (tests/logs/golden/console), and never held as a whole:

- `trace`: [__trace_bytecode] lines, with the breaks and graphs of one program every 64 MB;
- `dynamo`: what TORCH_LOGS=+dynamo writes for a larger model: half of it lines of the tracer, a
  quarter guards, the rest symbols, inlining and graphs, with breaks and graphs every 8 MB;
- `tt`: modules of a thousand operations at nine stages;
- `xla`: blocks of executions, one step after another;
- `output`: a program's own output, with one compile in it.

The run is really written (events and artifacts) into a temporary folder. Each log is read in a
process of its own; the time is its CPU time, the memory its largest resident size. No torch needed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compilescope.logs.format import LogSource
from compilescope.logs.input_files import BLOCK
from compilescope.logs.run_writer import RunWriter
from compilescope.logs.text.engine import text_reader

GOLDEN = Path(__file__).parent.parent / "tests" / "logs" / "golden" / "console"
LEAST_MB_S = 100.0
MOST_MB = 200.0


def golden(name: str) -> bytes:
    return lzma.decompress((GOLDEN / f"{name}.log.xz").read_bytes())


def lines_with(data: bytes, *marks: bytes) -> list[bytes]:
    return [line for line in data.splitlines(keepends=True) if any(m in line for m in marks)]


def again(data: bytes, number: int) -> bytes:
    """The same compilations once more, under other ids."""
    for frame in range(6):
        data = data.replace(b"[%d/" % frame, b"[%d/" % (frame + 10 * number))
    return data


def filled(lines: list[bytes], size: int) -> bytes:
    once = b"".join(lines)
    return once * (size // len(once) + 1)


def trace_log() -> Iterator[bytes]:
    program = golden("t213.c01_print")
    noise = filled(lines_with(program, b"[__trace_bytecode]"), BLOCK)
    for number in itertools.count():
        yield again(program, number)
        for _ in range(32):
            yield noise


def dynamo_log() -> Iterator[bytes]:
    program = golden("t213.c03_dataif")
    tracer = filled(lines_with(program, b"[__trace_"), 2 * BLOCK)
    guards = lines_with(program, b"[__guards] |")
    guards = [
        guards[0].partition(b"[__guards]")[0] + line[line.find(b"[__guards]") :] for line in guards
    ]
    other = lines_with(program, b"Skipping guard", b"track_symint", b"wrap_to_fake", b"INLINING")
    for number in itertools.count():
        yield again(program, number)
        yield tracer
        yield filled(guards, BLOCK)
        yield filled(other, BLOCK)


def tt_log() -> Iterator[bytes]:
    text = golden("ttlike.c03_dataif.head.no_TORCH_LOGS")
    large = [
        line * (100 if line.startswith(b"    %") else 4 if line.startswith(b"#loc") else 1)
        for line in text.splitlines(keepends=True)
    ]
    while True:
        yield b"".join(large)


def xla_log() -> Iterator[bytes]:
    text = golden("xla_lazy.c06_markstep_loop")
    start = text.index(b"\nExecution Analysis: ")
    end = text.index(b"\nCompilation Analysis: ", start)
    yield text
    while True:
        yield filled([text[start:end]], BLOCK)


def output_log() -> Iterator[bytes]:
    yield golden("t213.c02_item")
    lines = [b"step %d loss %.4f tokens/s %d\n" % (n, 3 / (n + 1), 9000 + n) for n in range(20_000)]
    while True:
        yield b"".join(lines)


LOGS = {
    "trace": trace_log,
    "dynamo": dynamo_log,
    "tt": tt_log,
    "xla": xla_log,
    "output": output_log,
}


def measure(name: str, megabytes: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        run.mkdir()
        writer = RunWriter(run)
        source = LogSource("console.log", time.time_ns())
        reader = text_reader(writer, source)
        done, spent = 0, 0.0
        for block in LOGS[name]():
            began = time.process_time()
            reader.feed(block)
            spent += time.process_time() - began
            done += len(block)
            if done >= megabytes * 1_000_000:
                break
        began = time.process_time()
        reader.finish()
        writer.close()
        spent += time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "log": name,
        "mb": round(done / 1e6),
        "mb_per_s": round(done / 1e6 / spent, 1),
        "memory_mb": round(memory),
        "lines": source.tally.lines,
        "events": writer.events,
        "unread": source.tally.unread,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mb", type=int, default=2000)
    parser.add_argument("--only", default=",".join(LOGS))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    results = []
    for name in asked.only.split(","):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results.append(pool.apply(measure, (name, asked.mb)))
    if asked.json:
        print(json.dumps({"logs": results, "least_mb_per_s": LEAST_MB_S, "most_mb": MOST_MB}))
    else:
        for one in results:
            print(
                f"{one['log']:8s} {one['mb']:5d} MB {one['mb_per_s']:7.1f} MB/s of CPU "
                f"{one['memory_mb']:4d} MB memory {one['events']:7d} events {one['unread']} unread"
            )
    bad = [r for r in results if r["memory_mb"] > MOST_MB or r["mb_per_s"] < LEAST_MB_S]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
