"""How long a run of many events takes to explain: reading, counting, rules, fixes and words.

Writes a run of N events (half of them graph breaks at N/20 places of a generated file, the rest
recompiles, graphs and times) to a temporary folder, then measures the CPU time of reading it,
of the digest with all rules, of asking the fixes what to do about each cause, and of drawing the
explanation. No torch is needed.

    python benchmarks/explain_speed.py [--events 2000] [--places 4]
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from compilescope.change.fixes.advice import advised
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.artifacts import DiskArtifacts
from compilescope.record.bodies import (
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
from compilescope.record.event import Event, encode
from compilescope.record.eventfile import EventFile
from compilescope.record.header import RunHeader
from compilescope.record.home import create_run
from compilescope.record.run import read_run
from compilescope.record.stack import CodeRef, Frame
from compilescope.report.explanation import explanation
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

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


CALLERS = tuple(Frame("/project/train.py", 9 * k + 5, f"call{k}") for k in range(7))


def write_run(home: Path, events: int, together: int) -> Path:
    """With so many places in each function."""
    places = max(events // 20, 1)
    source, sites = "", []
    for number in range(places):
        name = f"forward{number // together}"
        if number % together == 0:
            source += f"def {name}(x):\n"
        text, gb_type, gb_id, column = KINDS[number % len(KINDS)]
        line = source.count("\n") + 1
        text = text.format(number)
        first = text.split("\n", 1)[0]
        end = len(first.rstrip(":"))
        sites.append((gb_type, gb_id, Frame(FILE, line, name, column, end, first)))
        source += text
    folder = create_run(home, RunHeader(run="speed", tool="0", root="/project", ended_ns=1))
    artifact = DiskArtifacts(folder / "artifacts").put(source, "py")
    file, _ = EventFile.claim(folder, 0)
    code = CodeRef(FILE, 1, "forward0")

    def write(number: int, body: object, stack: tuple[Frame, ...] = ()) -> None:
        envelope = {"id": f"0.{number}", "time_ns": number, "pid": 1, "stack": stack}
        file.write(encode(Event(**envelope, compile_id="0/0", body=body)))  # type: ignore[arg-type]

    write(0, ProcessStarted(argv=("model.py",), python="3", torch="2.13.0", parent_pid=1))
    write(1, SourceSeen(FILE, artifact))
    for number in range(2, events - 1):
        gb_type, gb_id, frame = sites[number % places]
        if number % 2:
            write(number, GraphBreak(gb_type=gb_type, gb_id=gb_id, frame=code), (*CALLERS, frame))
        elif number % 4:
            failed = FailedGuard(f"x.size()[0] == {number}", "x.size()[0]", "1", "2", frame=frame)
            write(
                number, Recompile(code, (CacheEntryMiss("0/0", (failed,) * 4),)), (*CALLERS, frame)
            )
        elif number % 8:
            write(number, GraphCaptured(stage="dynamo", ops=3, frame=code, region=code))
        else:
            write(number, CompileTime(duration_ns=1000, phases_us={"a_us": 1}, frame=code))
    write(events - 1, ProcessEnded())
    file.close()
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--places", type=int, default=4, help="in each function")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        folder = write_run(Path(home), asked.events, asked.places)
        times = [time.process_time()]
        run = read_run(folder)
        times.append(time.process_time())
        seen = digest(run)
        times.append(time.process_time())
        reading = Reading(run)
        reading.__dict__["digest"] = advised(run, seen)  # Where it keeps its own.
        times.append(time.process_time())
        document = explanation(reading, range(1, len(reading.causes) + 1))
        text = to_text(document)
        times.append(time.process_time())
    read, rules, fixes, draw = (after - before for before, after in itertools.pairwise(times))
    lines = len(text.splitlines())
    print(f"{len(run.events)} events, {len(seen.sites)} sites, {lines} lines drawn")
    parts = f"read {read:.2f}, rules {rules:.2f}, fixes {fixes:.2f}, draw {draw:.2f}"
    print(f"CPU seconds: {parts}, all {read + rules + fixes + draw:.2f}")


if __name__ == "__main__":
    main()
