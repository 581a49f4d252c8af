"""What a reader sees first: the verdict, four numbers, where compile time went, where to start."""

from __future__ import annotations

from compilescope.knowledge.analysis.benchmarks import is_benchmark
from compilescope.knowledge.analysis.compile_shares import CompileShare, compile_shares
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.sweeps import is_sweep
from compilescope.record.bodies import GraphCompiled, LogRead, MinifyOutcome, TensorDiff
from compilescope.report.blocks import (
    Block,
    Facts,
    Figure,
    Figures,
    Paragraph,
    Portion,
    Portions,
    Span,
    Words,
    words,
)
from compilescope.report.cause_list import start_with
from compilescope.report.headline import has_losses, headline, is_blank
from compilescope.report.places import count, first_few
from compilescope.report.program_state import before_note, dropped_note
from compilescope.report.render.spans import duration
from compilescope.report.section import Reading, Section
from compilescope.report.sections.logged import fallback_note, log_verdict

_MOST_RECOMPILES = 4
"""Causes with a stretch of the bar of their own. Chosen: more can't be told apart by eye."""
_ROUNDED = 1.01
"""A part that is larger than its whole by less is a matter of rounding. Chosen."""
_SHARES = {"useful": "useful", "failed": "failed compilations", "break": "lost to graph breaks"}


def _build(reading: Reading) -> list[Block]:
    digest = reading.digest
    if is_benchmark(reading.run):
        from compilescope.report.benchmarks import benchmark_summary

        return benchmark_summary(reading)
    if is_sweep(reading.run):
        return []  # It has a summary of its own.
    if reading.run.count(MinifyOutcome) and is_blank(digest):
        return []  # Nobody watched what was compiled: the repro is all that it tells.
    if digest.only_compares:
        return [Paragraph(_agreement(reading))]
    # A log counts the graphs of other compilers too.
    blocks: list[Block] = [Paragraph(log_verdict(reading) or headline(reading))]
    blocks += fallback_note(reading)
    if digest.torch is not None and not _is_log_without_dynamo(reading):
        blocks.append(Figures(tuple(_figures(reading))))
        blocks += _compile_time(reading)
        blocks += _facts(digest)
    if not reading.full or reading.page:
        blocks += start_with(reading)
    blocks += before_note(reading)
    blocks += dropped_note(reading)
    return blocks


def _agreement(reading: Reading) -> Words:
    diffs = [body for _, body in reading.run.of(TensorDiff)]
    doubt = reading.digest.numbers.doubt
    if not diffs:
        return words(Span(f"Inconclusive: {doubt}.", "warn"))
    sides = f"{diffs[0].test or 'the test'} against {diffs[0].reference}"
    of_all = f"of {count(len(diffs), 'value')}"
    wrong = sum(diff.verdict == "fail" for diff in diffs)
    unclear = sum(diff.verdict == "unknown" for diff in diffs)
    if wrong:
        return words(
            Span(f"{wrong} {of_all} {'differs' if len(diffs) == 1 else 'differ'}, {sides}.", "bad")
        )
    if unclear:
        return words(Span(f"{unclear} {of_all} could not be judged, {sides}.", "warn"))
    if doubt:
        return words(Span(f"Inconclusive, {sides}: {doubt}.", "warn"))
    agree = "1 value agrees" if len(diffs) == 1 else f"All {len(diffs)} values agree"
    return words(Span(f"{agree}, {sides}.", "good"))


def _is_log_without_dynamo(reading: Reading) -> bool:
    return reading.run.count(LogRead) > 0 and is_blank(reading.digest)


def _figures(reading: Reading) -> list[Figure]:
    digest = reading.digest
    recompiled = sum(frame.count for frame in digest.recompiles)
    lost = sum(frame.avoidable for frame in digest.recompiles)
    limits = sum(frame.limit_hit for frame in digest.recompiles)
    functions = f"in {count(len(digest.recompiles), 'function')}" if digest.recompiles else ""
    hit = f"{count(limits, 'function')} hit the recompile limit" if limits else ""
    needed = recompiled - lost
    if needed:
        hit = ", ".join(filter(None, (hit, "needed" if not lost else f"{needed} needed")))
    least = "at least " if digest.hidden_breaks_possible else ""
    times = "once" if digest.break_events == 1 else f"{digest.break_events} times"
    reported = f"reported {times}" if digest.sites else ""
    return [
        Figure(
            str(digest.graphs),
            "Graphs",
            # Its operations are known of Dynamo's graphs only.
            "" if reading.run.count(GraphCompiled) else count(digest.graph_ops, "op"),
            target="graphs" if reading.full and digest.graphs else "",
        ),
        Figure(
            f"{least}{len(digest.sites)}",
            "Graph breaks",
            reported,
            "warn" if digest.sites else "good",
            "breaks" if reading.full and digest.sites else "",
        ),
        Figure(
            str(recompiled),
            "Recompiles",
            ", ".join(filter(None, (functions, hit))),
            "bad" if limits else "warn" if lost else "good",
            "recompiles" if reading.full and digest.recompiles else "",
        ),
        Figure(
            _spent(digest.compile_seconds),
            "Compile time",
            "; ".join(filter(None, (_phases(digest), _end_of_compiling(digest)))),
        ),
    ]


def _spent(seconds: float) -> str:
    return duration(seconds * 1e9) if seconds else "0 s"


def _phases(digest: Digest) -> str:
    """The stages that a reader knows, where PyTorch measured them, as parts of the whole.

    A backward that is compiled when it first runs is a compilation of its own: no part of
    AOTAutograd's time, and itself nothing but backend. Inductor's time is part of either.
    """
    seconds = digest.phases_seconds
    forward = seconds.get("aot_autograd_cumulative_compile_time_us", 0.0)
    backend = forward + seconds.get("backward_cumulative_compile_time_us", 0.0)
    inductor = seconds.get("inductor_cumulative_compile_time_us", 0.0)
    if not backend or backend > digest.compile_seconds * _ROUNDED:
        return ""
    told = f"{duration(backend * 1e9)} in the backend"
    of_it = 0 < inductor <= backend * _ROUNDED
    return told + (f", {duration(inductor * 1e9)} of it in Inductor" if of_it else "")


def _compile_time(reading: Reading) -> list[Block]:
    shares = compile_shares(reading.run, reading.digest)
    if len(shares) < 2 and (not reading.full or has_losses(reading.digest)):
        return []  # All of it looks useful where nobody recorded what was lost.
    whole = sum(share.seconds for share in shares)
    few = _few(shares, _MOST_RECOMPILES if reading.page else 0)
    drawn = tuple(_portion(share, reading) for share in few if share.seconds > 0)
    return [Portions("Compile time", duration(whole * 1e9), drawn)] if drawn else []


def _few(shares: list[CompileShare], most: int) -> list[CompileShare]:
    """The recompiles that cost least are one; so are all, where a list of causes follows."""
    again = [share for share in shares if share.kind == "recompile"]
    rest = again[most:]
    if not rest or (most and len(rest) < 2):
        return shares
    others = CompileShare(
        kind="recompile",
        label=f"{len(rest)} more" if most else "recompiles",
        seconds=sum(share.seconds for share in rest),
        because=rest[0].because,
    )
    at = shares.index(rest[0])
    return [*shares[:at], others, *shares[at + len(rest) :]]


def _portion(share: CompileShare, reading: Reading) -> Portion:
    again = share.kind == "recompile"
    label = share.label if again else _SHARES[share.kind]
    targets = {"recompile": f"recompile-{share.because[0]}" if share.because else ""}
    targets |= {"break": "breaks", "failed": "failures"}
    target = targets.get(share.kind, "") if reading.full else ""
    spent = duration(share.seconds * 1e9)
    group = "recompiles" if again and reading.page else ""
    return Portion(label, share.seconds, spent, share.kind, target, group)


def _facts(digest: Digest) -> list[Block]:
    rows = []
    if digest.coverage is not None:
        calls = sum(region.calls for region in digest.region_costs)
        gpu = any(region.clock == "gpu" for region in digest.region_costs)
        clock = "by the GPU's clock" if gpu else "by the host's clock"
        measured = Span(f", over {count(calls, 'call')} after warm-up, {clock}", "dim")
        rows.append(
            ("Coverage", words(f"{digest.coverage:.1f} % of the time inside graphs", measured))
        )
    elif digest.no_coverage:
        rows.append(("Coverage", words(Span(digest.no_coverage, "warn"))))
    if digest.unexplained_skips:
        skipped = count(len(digest.unexplained_skips), "frame")
        rows.append(("Unexplained", words(f"{skipped} skipped without a reason")))
    ranks = sorted({process.rank for process in digest.processes})
    if len(digest.processes) > 1:
        label = f", ranks {first_few(map(str, ranks))}" if len(ranks) > 1 else ""
        rows.append(("Processes", words(f"{len(digest.processes)}{label}")))
    return [Facts(tuple(rows))] if rows else []


def _end_of_compiling(digest: Digest) -> str:
    """Of the function that went on longest; empty where nobody counted its calls."""
    if not digest.graphs:
        return ""
    compiled = [each for each in digest.called_regions if each.last_compiled]
    on = [each for each in compiled if each.calls == each.last_compiled > 1]
    if on:
        many = f" in {len(on)} of {len(compiled)} functions" if len(compiled) > 1 else ""
        return f"continues in call {on[0].calls}, the last{many}"
    if not compiled:
        return ""
    last = max(compiled, key=lambda each: each.last_compiled)
    return f"stopped after call {last.last_compiled} of {last.calls}" if last.calls > 1 else ""


SECTION = Section("summary", 0, _build)
