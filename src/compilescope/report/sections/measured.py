"""How the run was recorded: versions, flags, and what the record lacks."""

from __future__ import annotations

from datetime import datetime, timezone

from compilescope.knowledge.analysis.benchmarks import is_benchmark
from compilescope.knowledge.analysis.cost import is_by_device
from compilescope.knowledge.analysis.sweeps import is_sweep
from compilescope.record.bodies import ProcessStarted, RegionTime
from compilescope.report.benchmark_words import machine_lines
from compilescope.report.blocks import Block, Facts, Fold, Paragraph, Table, Words, note, words
from compilescope.report.places import count, first_few
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    blocks: list[Block] = [Facts(tuple(_facts(reading)))]
    if not (is_sweep(reading.run) or is_benchmark(reading.run)):
        blocks.append(_processes(reading))
    blocks += [
        Paragraph(
            words(f"{hook.hook}: no {hook.target}, so this is not recorded: {hook.loses}."), "-"
        )
        for hook in reading.digest.unavailable
    ]
    blocks += [
        Paragraph(words(f"Internal error in {fault.where}: {fault.error}"), "-")
        for fault in reading.digest.faults
    ]
    phases = reading.digest.phases_seconds
    if phases:
        rows = tuple(
            (words(name.removesuffix("_us")), words(f"{seconds:.3f}"))
            for name, seconds in sorted(phases.items(), key=lambda item: -item[1])
        )
        table = Table(("phase (PyTorch's name)", "seconds"), rows, (1,))
        blocks.append(
            Fold(words("Seconds by phase (phases nest, so they do not add up)"), (table,))
        )
    return blocks


def _facts(reading: Reading) -> list[tuple[str, Words]]:
    header, seen = reading.run.header, reading.digest
    started = next((body for _, body in reading.run.of(ProcessStarted)), None)
    rows = [("compilescope", words(header.tool))]
    if started is not None:
        rows += [("torch", words(started.torch)), ("Python", words(started.python))]
        rows.append(("build", words(started.device)))
    if is_benchmark(reading.run):
        rows += [("machine", words(line)) for line in machine_lines(reading.run)]
    where = (("command", " ".join(seen.command)), ("folder", header.cwd), ("host", header.host))
    rows += [(label, words(value)) for label, value in where if value]
    if header.started_ns:
        began = datetime.fromtimestamp(header.started_ns / 1e9, tz=timezone.utc)
        rows.append(("began", words(f"{began:%Y-%m-%d %H:%M:%S} UTC")))
    rows.append(("ended", words(_end(reading))))
    timed = any(True for _ in reading.run.of(RegionTime))
    if not (is_sweep(reading.run) or is_benchmark(reading.run)):
        rows.append(("calls", words(f"timed, {_clock(reading)}" if timed else "not timed")))
    rows.append(("events", words(f"{seen.events} read")))
    if seen.unread:
        rows.append(("unreadable", words(count(seen.unread, "line"))))
    if seen.unread_files:
        rows.append(("unreadable files", words(first_few(seen.unread_files))))
    if seen.unknown_events:
        rows.append(("of unknown kind", words(count(seen.unknown_events, "event"))))
    if seen.tool_faults:
        rows.append(("internal errors", words(str(seen.tool_faults))))
    return rows


def _clock(reading: Reading) -> str:
    return "by the GPU's clock" if is_by_device(reading.run) else "by the host's clock"


def _end(reading: Reading) -> str:
    seen = reading.digest
    if seen.live:
        return "still running"
    if seen.cut_short:
        return f"truncated: {seen.cut_short_reason}"
    return f"with exit status {seen.exit_status}" if seen.exit_status is not None else "normally"


def _processes(reading: Reading) -> Block:
    processes = reading.digest.processes
    if not processes:
        return note("No process was recorded.")
    ends = {True: "normally", False: "without recording its end", None: "forked, end unknown"}
    rows = tuple(
        (
            words(str(process.rank)),
            words(str(process.pid)),
            words(str(process.events)),
            words(ends[process.ended]),
        )
        for process in processes
    )
    return Table(("rank", "process", "events", "ended"), rows, (0, 1, 2))


SECTION = Section("measured", 900, _build, "How this was measured", in_summary=False)
