"""How long a run of many events takes to explain: reading, counting, rules and words.

Writes a run of N events (half of them graph breaks at N/20 places of a generated file, the rest
recompiles, graphs and times) to a temporary folder, then measures the CPU time of reading it,
of the digest with all rules, and of drawing the explanation. No torch is needed.

    python benchmarks/explain_speed.py [--events 10000]
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from compilescope.analysis.digest import digest
from compilescope.model.artifacts import DiskArtifacts
from compilescope.model.bodies import (
    CacheEntryMiss,
    CompileTime,
    FailedGuard,
    GraphBreak,
    GraphCaptured,
    ProcessEnded,
    ProcessStarted,
    Recompile,
    SourceSeen,
)
from compilescope.model.event import Event, encode
from compilescope.model.eventfile import EventFile
from compilescope.model.header import RunHeader
from compilescope.model.home import create_run
from compilescope.model.run import read_run
from compilescope.model.stack import CodeRef, Frame
from compilescope.report.explanation import explanation
from compilescope.report.render.terminal import to_text

FILE = "/project/model.py"
KINDS = (
    (
        "    if x{0}.sum() > {0}:\n        x{0} = x{0} + 1\n",
        "Data-dependent branching",
        "GB0170",
        7,
    ),
    ("    y{0} = x{0}.max().item()\n    z{0} = 1\n", "Unsupported Tensor.item() call", "GB0124", 8),
)


def write_run(home: Path, events: int) -> Path:
    places = max(events // 20, 1)
    source, sites = "def forward(x):\n", []
    for number in range(places):
        text, gb_type, gb_id, column = KINDS[number % len(KINDS)]
        line = source.count("\n") + 1
        text = text.format(number)
        first = text.split("\n", 1)[0]
        end = len(first.rstrip(":"))
        sites.append((gb_type, gb_id, Frame(FILE, line, "forward", column, end, first)))
        source += text
    folder = create_run(home, RunHeader(run="speed", tool="0", root="/project", ended_ns=1))
    artifact = DiskArtifacts(folder / "artifacts").put(source, "py")
    file, _ = EventFile.claim(folder, 0)
    code = CodeRef(FILE, 1, "forward")

    def write(number: int, body: object, stack: tuple[Frame, ...] = ()) -> None:
        envelope = {"id": f"0.{number}", "time_ns": number, "pid": 1, "stack": stack}
        file.write(encode(Event(**envelope, compile_id="0/0", body=body)))  # type: ignore[arg-type]

    write(0, ProcessStarted(argv=("model.py",), python="3", torch="2.13.0", parent_pid=1))
    write(1, SourceSeen(FILE, artifact))
    for number in range(2, events - 1):
        gb_type, gb_id, frame = sites[number % places]
        if number % 2:
            write(number, GraphBreak(gb_type=gb_type, gb_id=gb_id, frame=code), (frame,) * 8)
        elif number % 4:
            failed = FailedGuard(f"x.size()[0] == {number}", "x.size()[0]", "1", "2", frame=frame)
            write(number, Recompile(code, (CacheEntryMiss("0/0", (failed,) * 4),)), (frame,) * 8)
        elif number % 8:
            write(number, GraphCaptured(stage="dynamo", ops=3, frame=code, region=code))
        else:
            write(number, CompileTime(duration_ns=1000, phases_us={"a_us": 1}, frame=code))
    write(events - 1, ProcessEnded())
    file.close()
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=10_000)
    events = parser.parse_args().events
    with tempfile.TemporaryDirectory() as home:
        folder = write_run(Path(home), events)
        times = [time.process_time()]
        run = read_run(folder)
        times.append(time.process_time())
        seen = digest(run)
        times.append(time.process_time())
        document = explanation(run, seen, list(enumerate(seen.sites, 1)), with_rest=True)
        text = to_text(document)
        times.append(time.process_time())
    read, rules, draw = (after - before for before, after in itertools.pairwise(times))
    lines = len(text.splitlines())
    print(f"{len(run.events)} events, {len(seen.sites)} sites, {lines} lines drawn")
    whole = read + rules + draw
    print(f"CPU seconds: read {read:.2f}, rules {rules:.2f}, draw {draw:.2f}, all {whole:.2f}")


if __name__ == "__main__":
    main()
