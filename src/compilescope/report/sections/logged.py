"""How complete a log is, and the graphs it shows: how many, how many would do, and why."""

from __future__ import annotations

from compilescope.knowledge.analysis.logged.answers import Answers, LoggedBreak, answers
from compilescope.knowledge.analysis.logged.fallbacks import MOST_SOUGHT, FallbackOp
from compilescope.knowledge.analysis.logged.graphs import MEANINGS, REMEDIES, LoggedGraph
from compilescope.knowledge.analysis.logged.verdict import LogVerdict
from compilescope.knowledge.analysis.partial_digest import is_long
from compilescope.report.blocks import (
    Block,
    Excerpt,
    Facts,
    Fold,
    Heading,
    Item,
    Listing,
    Paragraph,
    Span,
    Style,
    Table,
    Words,
    words,
)
from compilescope.report.places import count, first_line, place
from compilescope.report.section import MOST_IN_FULL, Reading, Section

# Chosen: the full report shows what people may still read, the summary a glance.
_MOST_GRAPHS = 200
_FEW_GRAPHS = 12
_FEW_OPS = 6
_UNDRAWN = Paragraph(())
"""In a long run: a break that nobody draws, but that is counted."""


def _answers(reading: Reading) -> Answers | None:
    return answers(reading.run, reading.digest)


def _build(reading: Reading) -> list[Block]:
    found = reading.once(_answers)
    if found is None:
        return []
    blocks: list[Block] = [_facts(found.verdict), *_judged(found.verdict)]
    if found.source_files:
        blocks += _source_files(found)
    if found.classes:
        blocks.append(_classes(found))
    if found.fallback_ops:
        blocks.append(Heading("Operators without a lowering", "they run on the CPU"))
        blocks.append(_fallbacks(found, reading))
    if not reading.full:
        return blocks  # A summary has room for what the log lacks, and for why there are graphs.
    if found.breaks:
        blocks.append(Heading("Breaks", "with the graphs they cause"))
        most = MOST_IN_FULL if is_long(reading.run) else len(found.breaks)
        blocks += [_break(n, each, reading) for n, each in enumerate(found.breaks[:most], 1)]
        blocks += [_UNDRAWN] * (len(found.breaks) - most)
    if found.graphs:
        blocks.append(Heading("Each graph", "in log order"))
        blocks += _graphs(found, reading)
    return blocks


def _facts(verdict: LogVerdict) -> Facts:
    rows: list[tuple[str, Words]] = [
        ("Formats", words(", ".join(verdict.formats) or "none recognized")),
        (
            "Settings found",
            words(Span(" ".join(verdict.flags), "code") if verdict.flags else "none"),
        ),
    ]
    if verdict.build:
        rows.append(("Build", words(verdict.build)))
    return Facts(tuple(rows))


def _judged(verdict: LogVerdict) -> list[Block]:
    blocks: list[Block] = [Paragraph(words(Span(note, "warn")), "!") for note in verdict.notes]
    for lack in verdict.lacks:
        said = words("Not enabled: ", Span(lack.setting, "code"), f", which shows {lack.shows}.")
        blocks.append(Paragraph(said, "!"))
    if verdict.rerun:
        blocks.append(Paragraph(words("To see more:")))
        blocks += [
            Paragraph(words(Span(command, "code")), unwrapped=True)
            for command in (*verdict.prepare, verdict.rerun)
        ]
    return blocks


def _source_files(found: Answers) -> list[Block]:
    """Where the lines around each place come from, and which files are not the program's."""
    used = [each for each in found.source_files if not each.problem]
    blocks: list[Block] = []
    if used:
        unchecked = sum(not each.agrees for each in used)
        doubt = f"; nothing in the log to compare {unchecked} of them with" if unchecked else ""
        said = f"{count(len(used), 'file')} on this machine match{'es' * (len(used) == 1)} the log"
        blocks.append(Paragraph(words(Span(f"Source: {said}{doubt}.", "dim"))))
    for each in found.source_files:
        if each.problem:
            told = f"{each.here} is not used: {each.problem}."
            blocks.append(Paragraph(words(Span(told, "warn")), "!"))
    return blocks


_TELLERS = {
    "dynamo": "Dynamo's bridge",
    "profiler": "the profiler",
    "counter": "a metrics report",
}


def _fallbacks(found: Answers, reading: Reading) -> Table:
    rows = tuple(
        (
            words(Span(op.op, "code"), " (a value read on the host)" if op.host_read else ""),
            words(str(op.count)),
            words(", ".join(_TELLERS.get(each, each) for each in op.told_by)),
            words(place(op.log, op.log_line, reading.root) if op.log_line else op.log or "-"),
            words(_called_at(op, reading.root)),
        )
        for op in found.fallback_ops
    )
    return Table(("operator", "times", "reported by", "log line", "called at"), rows, (1,))


def _called_at(op: FallbackOp, root: str) -> str:
    if not op.line and not op.sought:
        return f"not searched: beyond {MOST_SOUGHT} operators"
    left = f"{count(op.graphs_left, 'graph')} not searched" if op.graphs_left else ""
    where = _found_at(op, root)
    if not where:
        return f"not found; {left}" if left else "not in the log"
    return f"{where}; {left}" if left else where


def _found_at(op: FallbackOp, root: str) -> str:
    if not op.line:
        return f"one of {op.calling_lines} lines" if op.calling_lines else ""
    at = place(op.file, op.line, root)
    return at if op.exact or not op.function else f"in {op.function} ({at})"


def log_verdict(reading: Reading) -> Words | None:
    """How many graphs were compiled, by Dynamo or for a device; None for what is no log."""
    found = reading.once(_answers)
    if found is None:
        return None
    number = len(found.graphs)
    said = ("At least " if found.at_least else "") + count(number, "graph")
    style: Style = "bad" if number > found.expected else "good"
    if not number:
        return words(Span(_without_graphs(found), "warn"))
    rest = f" instead of {found.expected}." if number > found.expected else " compiled."
    return words(Span(said[:1].upper() + said[1:] + rest, style))


def _without_graphs(found: Answers) -> str:
    """Of a log with `TORCH_LOGS=graph_breaks,recompiles`, for one."""
    if not found.at_least:
        return "No graph was compiled."
    counts = ((len(found.breaks), "graph break"), (found.recompiles, "recompile"))
    shown = " and ".join(count(number, word) for number, word in counts if number)
    return f"{shown}. The log does not show the graphs." if shown else "The log shows no graphs."


def fallback_note(reading: Reading) -> list[Block]:
    """The operators without a lowering, in one line: a summary may have no room for their table."""
    found = reading.once(_answers)
    ops = [op for op in found.fallback_ops if not op.host_read] if found is not None else []
    if not ops or reading.full:
        return []
    named: list[Span | str] = []
    for op in ops[:_FEW_OPS]:
        named += [", " if named else " ", Span(op.op, "code")]
    more = f" and {len(ops) - _FEW_OPS} more" if len(ops) > _FEW_OPS else ""
    lines = sorted({op.log_line for op in ops if op.log_line})
    at = f" (from line {lines[0]} of the log)" if lines else ""
    return [Paragraph(words("Operators without a lowering:", *named, f"{more}{at}."))]


def nothing_to_explain(reading: Reading) -> list[Block]:
    """Of a log without a cause that can be explained: whether that is good news. None for a run
    that was not read from a log."""
    found = reading.once(_answers)
    if found is None:
        return []
    verdict = log_verdict(reading)
    assert verdict is not None, "it has answers"
    failed = [graph for graph in found.graphs if graph.kind == "failed"]
    if failed:
        said = f"{count(len(failed), 'graph')} failed to compile: {first_line(failed[0].words)}"
        return [Paragraph(words(Span(said, "bad"))), *_judged(found.verdict)]
    if len(found.graphs) > found.expected:
        why = Span(" The log does not say why each of them exists:", "warn")
        return [Paragraph((*verdict, why)), _classes(found), *_judged(found.verdict)]
    if found.at_least or not found.graphs:
        why = Span(" It shows too little to say whether anything was lost.", "warn")
        return [Paragraph((*verdict, why)), *_judged(found.verdict)]
    good = Span(" The log shows no graph breaks, recompiles or failures.", "good")
    return [Paragraph((*verdict, good))]


def _classes(found: Answers) -> Table:
    rows = tuple(
        (
            words(str(number)),
            words(Span(kind, "strong")),
            words(MEANINGS[kind]),
            words(REMEDIES.get(kind, "")),
        )
        for kind, number in found.classes.items()
    )
    return Table(("graphs", "why", "what it means", "what helps"), rows, (0,))


def _break(number: int, each: LoggedBreak, reading: Reading) -> Item:
    blocks: list[Block] = []
    if each.lines:
        texts = tuple(text for _, text in each.lines)
        blocks.append(Listing(each.lines[0][0], texts, each.line))
    elif each.source:
        blocks.append(Excerpt(each.source.strip(), None, None))
    times = "not reported" if each.inferred else f"reported {count(each.events, 'time')}"
    times = each.context or times
    if each.echoes:
        times += (
            f", and {count(each.echoes, 'time')} more as a side effect in the plugin's own override"
        )
    blocks.append(Paragraph(words(each.reason)))
    blocks.append(Paragraph(words(Span(times, "dim"))))
    if each.repro:
        doubt = f" (unverified: {each.no_repro})" if each.no_repro else ""
        blocks.append(Paragraph(words(Span(each.repro, "code"), doubt), "Repro:"))
    elif each.no_repro:
        blocks.append(Paragraph(words(Span(f"No repro: {each.no_repro}.", "dim"))))
    at = place(each.file, each.line, reading.root)
    inside = f" in {each.function}" if each.function else ""
    title = words(Span(at, "strong"), inside)
    known = each.graphs or each.gb_id or each.inferred
    caused = f"{count(each.graphs, 'graph')}  {each.gb_id or ''}".rstrip() if known else ""
    return Item(str(number), title, words(Span(caused, "warn")), tuple(blocks))


def _graphs(found: Answers, reading: Reading) -> list[Block]:
    most = _MOST_GRAPHS if reading.full else _FEW_GRAPHS
    shown = found.graphs[:most]
    rows = tuple(_row(n, graph, reading.root) for n, graph in enumerate(shown, 1))
    columns = ("", "graph", "why", "from", "ops", "stages")
    blocks: list[Block] = [Table(columns, rows, (0, 4))]
    if len(found.graphs) > most:
        blocks.append(Paragraph(words(f"and {len(found.graphs) - most} more"), "-"))
    detailed = [_stages(n, graph) for n, graph in enumerate(shown, 1) if graph.stages]
    if reading.full and detailed:
        blocks.append(Fold(words("Operations by stage"), tuple(detailed)))
    return blocks


def _row(number: int, graph: LoggedGraph, root: str) -> tuple[Words, ...]:
    at = place(graph.place.file, graph.place.line, root) if graph.place else "-"
    why = Span(graph.kind, "bad" if graph.kind == "failed" else "plain")
    said = f": {first_line(graph.words)}" if graph.words else ""
    return (
        words(str(number)),
        words(Span(graph.name[:24] or "-", "code")),
        words(why, said),
        words(at),
        words("-" if graph.ops is None else str(graph.ops)),
        words(_reached(graph)),
    )


def _reached(graph: LoggedGraph) -> str:
    if not graph.stages:
        return "-"
    last = graph.stages[-1].name or "?"
    text = f"{len(graph.stages)}, to {last}"
    if graph.failed_stage:
        text += f"; {graph.failed_stage} failed"
    return f"{text}; truncated" if graph.cut else text


def _stages(number: int, graph: LoggedGraph) -> Table:
    rows = tuple(
        (
            words(stage.name or "?"),
            words("-" if stage.ops is None else str(stage.ops)),
            words(", ".join(f"{name} {times}" for name, times in stage.kinds.items())),
            words("" if stage.whole else "truncated or mixed"),
        )
        for stage in graph.stages
    )
    return Table((f"graph {number}", "ops", "kinds", ""), rows, (1,))


SECTION = Section("log", 12, _build, "The log", "what it contains, and the graphs it shows")
