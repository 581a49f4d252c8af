"""The verdict in one sentence, and the counts it rests on."""

from __future__ import annotations

from compilescope.model.bodies import LogRead, TensorDiff
from compilescope.report.blocks import (
    Block,
    Facts,
    Heading,
    Paragraph,
    Span,
    Words,
    words,
)
from compilescope.report.ending import ending, nothing_before
from compilescope.report.places import count
from compilescope.report.section import Reading, Section
from compilescope.report.start import start_with
from compilescope.report.uncompiled import dropped_note, nothing_compiled
from compilescope.rules.digest import Digest
from compilescope.rules.findings import findings


def _build(reading: Reading) -> list[Block]:
    digest = reading.digest
    diffs = [body for _, body in reading.run.of(TensorDiff)]
    if diffs and not digest.graphs and not findings(digest):
        # A comparison of numbers, and no more: nobody watched what was compiled.
        return [Paragraph(_agreement(diffs))]
    blocks = ending(digest)
    logged = reading.run.count(LogRead) > 0
    if logged:
        # What the log itself is worth comes first, and counts the graphs of other compilers.
        blocks.append(Heading("Dynamo", "what it captured, and where it stopped"))
    blocks.append(Paragraph(_NOT_TOLD if logged and _is_blank(digest) else _verdict(reading)))
    if digest.torch is not None:
        blocks.append(Facts(tuple(_facts(digest))))
    blocks += start_with(digest)
    blocks += dropped_note(reading)
    return blocks


def _agreement(diffs: list[TensorDiff]) -> Words:
    sides = f"{diffs[0].test or 'the test'} against {diffs[0].reference}"
    of_all = f"of {count(len(diffs), 'value')}, {sides}"
    wrong = sum(diff.verdict == "fail" for diff in diffs)
    unclear = sum(diff.verdict == "unknown" for diff in diffs)
    if wrong:
        return words(Span(f"{wrong} {of_all}, differ.", "bad"))
    if unclear:
        return words(Span(f"{unclear} {of_all}, nobody can tell.", "warn"))
    return words(Span(f"All {of_all}, agree.", "good"))


_NOT_TOLD = words(Span("The log tells of no compilation by Dynamo.", "warn"))


def _is_blank(digest: Digest) -> bool:
    """Nothing was seen: of a log that says nothing of the program."""
    lost = digest.sites or digest.eager_frames or digest.recompiles or digest.failures
    return not lost and not digest.graphs


def _verdict(reading: Reading) -> Words:
    digest = reading.digest
    early = nothing_before(digest) if _is_blank(digest) else None
    if early is not None:
        return early
    if digest.torch is None:
        return words(
            Span("No process of this program imported torch: there was nothing to see.", "warn")
        )
    failed = [failure for failure in digest.failures if not failure.suppressed]
    lost = bool(digest.sites or digest.eager_frames or digest.recompiles or digest.failures)
    if not lost and not digest.graphs:
        return nothing_compiled(reading)
    if not lost:
        graphs = count(digest.graphs, "graph")
        return words(Span(f"{graphs}, no graph break, no recompile.", "good"))
    causes = []
    if failed:
        causes.append(count(len(failed), "failed compilation"))
    if digest.sites:
        least = "at least " if digest.hidden_breaks_possible else ""
        causes.append(least + count(len(digest.sites), "graph break site"))
    if digest.eager_frames:
        causes.append(count(len(digest.eager_frames), "function") + " left to eager mode")
    recompiled = sum(frame.count for frame in digest.recompiles)
    if recompiled:
        causes.append(count(recompiled, "recompile"))
    # A failed compilation that was suppressed shows as an eager function; say no more of it here.
    tail = ": " + ", ".join(causes) + "." if causes else "."
    hoped = digest.regions
    if digest.graphs == 0:
        return words(Span("Nothing was compiled" + tail, "bad"))
    if digest.graphs == hoped:
        return words(Span(count(digest.graphs, "graph") + tail, "warn"))
    return words(
        Span(f"{count(digest.graphs, 'graph')} where {hoped} {_was(hoped)} hoped for{tail}", "warn")
    )


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _facts(digest: Digest) -> list[tuple[str, Words]]:
    least = "at least " if digest.hidden_breaks_possible else ""
    sites = f"{least}{len(digest.sites)}"
    reports = f", reported {count(digest.break_events, 'time')}" if digest.sites else ""
    whole = sum(not frame.rest_only for frame in digest.eager_frames)
    rest = len(digest.eager_frames) - whole
    eager = count(whole, "function") + " as a whole"
    if rest:
        eager += f", {count(rest, 'function')} from a break on"
    recompiled = sum(frame.count for frame in digest.recompiles)
    functions = f" of {count(len(digest.recompiles), 'function')}" if digest.recompiles else ""
    rows = [
        ("Graphs", words(f"{digest.graphs}, with {count(digest.graph_ops, 'op')} in all")),
        ("Break sites", words(sites + reports)),
        ("Left to eager", words(eager)),
        ("Recompiles", words(f"{recompiled}{functions}")),
        ("Compile time", words(f"{digest.compile_seconds:.2f} s of wall time", *_phases(digest))),
    ]
    if digest.coverage is not None:
        calls = sum(region.calls for region in digest.region_costs)
        measured = Span(f"; {count(calls, 'call')} after warm-up, by the host's clock", "dim")
        covered = f"{digest.coverage:.1f} % of the time inside graphs"
        rows.append(("Coverage", words(covered, measured)))
    elif digest.no_coverage:
        rows.append(("Coverage", words(Span(digest.no_coverage, "warn"))))
    if digest.unexplained_skips:
        rows.insert(
            3, ("Unexplained", words(count(len(digest.unexplained_skips), "skipped frame")))
        )
    ranks = sorted({process.rank for process in digest.processes})
    if len(digest.processes) > 1:
        label = f", ranks {', '.join(map(str, ranks))}" if len(ranks) > 1 else ""
        rows.append(("Processes", words(f"{len(digest.processes)}{label}")))
    return rows


def _phases(digest: Digest) -> list[str | Span]:
    """The three stages that a reader knows, where PyTorch measured them."""
    seconds = digest.phases_seconds
    backend = seconds.get("aot_autograd_cumulative_compile_time_us", 0.0)
    inductor = seconds.get("inductor_cumulative_compile_time_us", 0.0)
    if not backend:
        return []
    parts = f"; {backend:.2f} s in the backend"
    if inductor:
        parts += f", {inductor:.2f} s of it in Inductor"
    return [Span(parts, "dim")]


SECTION = Section("summary", 0, _build)
