"""What a log is worth, and the graphs it tells of: how many, how many were hoped for, and why."""

from __future__ import annotations

from compilescope.report.blocks import (
    Block,
    Excerpt,
    Facts,
    Fold,
    Heading,
    Item,
    Paragraph,
    Span,
    Style,
    Table,
    Words,
    words,
)
from compilescope.report.places import count, first_line, place
from compilescope.report.section import Reading, Section
from compilescope.rules.logged.answers import Answers, LoggedBreak, answers
from compilescope.rules.logged.classes import MEANINGS, REMEDIES
from compilescope.rules.logged.graph import LoggedGraph
from compilescope.rules.logged.verdict import LogVerdict

_MOST_GRAPHS = 200
_FEW_GRAPHS = 12


def _build(reading: Reading) -> list[Block]:
    found = answers(reading.run, reading.digest)
    if found is None:
        return []
    blocks: list[Block] = [_facts(found.verdict), *_judged(found.verdict)]
    if found.classes:
        blocks.append(_classes(found))
    compiled = any(system != "torch" for system in found.verdict.systems)
    if not reading.full and not compiled:
        return blocks  # What follows says no more than the sections on breaks and graphs do.
    if found.breaks:
        blocks.append(Heading("Breaks", "with the graphs they cause"))
        blocks += [_break(n, each, reading) for n, each in enumerate(found.breaks, 1)]
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
        blocks.append(Paragraph(words(Span(verdict.rerun, "code")), "To see more:"))
    return blocks


def log_verdict(reading: Reading) -> Words | None:
    """How many graphs were compiled, by Dynamo or for a device; None for what is no log."""
    found = answers(reading.run, reading.digest)
    if found is None:
        return None
    number = len(found.graphs)
    said = ("At least " if found.at_least else "") + count(number, "graph")
    style: Style = "bad" if number > found.expected else "good"
    if not number:
        told = "No graph was compiled." if not found.at_least else "The log shows no graphs."
        return words(Span(told, "warn"))
    rest = f" instead of {found.expected}." if number > found.expected else " compiled."
    return words(Span(said[:1].upper() + said[1:] + rest, style))


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
    if each.source:
        blocks.append(Excerpt(each.source.strip(), None, None))
    times = "not reported" if each.inferred else f"reported {count(each.events, 'time')}"
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
    title = words(Span(place(each.file, each.line, reading.root), "strong"), f" in {each.function}")
    caused = f"{count(each.graphs, 'graph')}  {each.gb_id or ''}".rstrip()
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
