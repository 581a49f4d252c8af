"""A benchmark run as a document: the usual table, the machine, bars with intervals, all figures.

`compilescope bench` prints it at its end; `show` and `report` draw the same blocks as sections.
"""

from __future__ import annotations

from collections.abc import Callable

from compilescope.knowledge.analysis.benchmarks import (
    EAGER,
    Trial,
    benchmarks,
    compiled_backends,
    effect,
    trials,
)
from compilescope.record.benchmark import Benchmark
from compilescope.report.benchmark_words import (
    TOO_NOISY,
    bytes_cell,
    compile_cell,
    interval_text,
    kerneldiff_cell,
    like_median,
    machine_lines,
    ms_cell,
    ms_text,
    number_cell,
    samples_cell,
    seconds_cell,
    settings_line,
    setup_name,
    speedup_cell,
    varying,
)
from compilescope.report.blocks import (
    Block,
    Document,
    Item,
    Measures,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    Words,
    note,
    plain,
    prose,
    words,
)
from compilescope.report.places import count
from compilescope.report.section import Reading

_EFFECTS: tuple[tuple[str, str, Style], ...] = (
    ("faster", "than", "good"),
    ("slower", "than", "bad"),
    ("not measurably different", "from", "plain"),
)
_MOST_MODELS = 1_000
"""In the section: nobody reads more. Chosen as for the rows of a table."""
_WIDTH = 78
"""Of a table on a terminal of eighty columns."""
_BESIDE = 3
"""Backends side by side in a table of all figures, where the page isn't wider than a terminal.
Chosen: with their intervals more do not fit."""


def benchmarks_document(reading: Reading) -> Document:
    """The summary and the bars; a full reading has all figures too."""
    seen = reading.digest
    torch = f"torch {seen.torch}" if seen.torch else ""
    parts = [Part("summary", "", tuple(benchmark_summary(reading)))]
    drawn = benchmark_items(reading)
    if drawn:
        parts.append(Part("benchmarks", "Benchmarks", tuple(drawn), LATENCY_NOTE))
    return Document(
        title=f"compilescope bench {seen.run}",
        subtitle=" · ".join(text for text in (" ".join(seen.command), torch) if text),
        parts=tuple(parts),
        root=seen.root,
    )


LATENCY_NOTE = "median ms [95 % interval], speed-up"


def benchmark_summary(reading: Reading) -> list[Block]:
    """The verdict, the table that people know, every backend where there are several, where and
    how it was measured, and what went wrong."""
    found = trials(reading.run)
    if not found:
        nothing = Paragraph(words(Span("No model has been measured.", "warn")))
        return [nothing, *(note(line) for line in machine_lines(reading.run))]
    backends = compiled_backends(reading.run)
    blocks: list[Block] = [Paragraph(_verdict(reading, found, backends))]
    if backends:
        blocks.append(_known_table(reading, found, backends[0]))
    if reading.full and len(backends) > 1:
        blocks.append(_backends_table(reading, found))
    blocks.append(note(""))
    blocks += [note(line) for line in machine_lines(reading.run)]
    blocks.append(note(settings_line(reading.run)))
    blocks += _troubles(found)
    return blocks


def _verdict(reading: Reading, found: list[Trial], backends: list[str]) -> Words:
    parts: list[Span] = []
    if backends:
        parts += _against_eager(found, backends[0])
    else:
        parts.append(Span(f"{count(len(found), 'model')} in eager mode only.", "warn"))
    rows = benchmarks(reading.run)
    failed = sum(bool(row.error) for row in rows)
    wrong = sum(row.kerneldiff == "fail" for row in rows)
    if failed:
        of_all = count(len(rows), "benchmark")
        parts += [Span(" "), Span(f"{failed} of {of_all} failed.", "bad")]
    if wrong:
        what = count(wrong, "result does", "results do")
        parts += [Span(" "), Span(f"{what} not match eager mode (KernelDiff).", "bad")]
    return words(*parts)


def _against_eager(found: list[Trial], backend: str) -> list[Span]:
    """`inductor` is faster than eager mode on 2 of 3 models, slower on 1."""
    rows = [row for trial in found for row in trial.compiled if row.backend == backend]
    effects = [effect(row.speedup_ci) for row in rows]
    faster, slower = effects.count("faster"), effects.count("slower")
    same = effects.count("same")
    models = count(len(rows), "model")
    noisy = sum(row.too_noisy for row in rows)
    if noisy == len(rows) > 0:
        unknown = f": {TOO_NOISY} whether it is faster than eager mode on {models}."
        return [Span(backend, "code"), Span(unknown, "warn")]
    if not faster and not slower and not same:
        return [Span(backend, "code"), Span(f": no speed-up was measured on {models}.", "warn")]
    told: list[Span] = []
    for number, (how, than, style) in zip((faster, slower, same), _EFFECTS, strict=True):
        if number and not told:
            where = f"{number} of {models}" if len(rows) > 1 else rows[0].model
            told.append(Span(f"{how} {than} eager mode on {where}", style))
        elif number:
            told += [Span(", "), Span(f"{how} on {number}", style)]
    if noisy:
        told += [Span(", "), Span(f"{TOO_NOISY} on {noisy}", "warn")]
    return [Span(backend, "code"), Span(" is "), *told, Span(".")]


_Column = tuple[str, Callable[[Benchmark], Words]]


def _known_table(reading: Reading, found: list[Trial], backend: str) -> Table:
    """Model, Eager ms, Inductor ms, Speed-up, KernelDiff; compile time where there is room."""
    title = backend.capitalize() if backend.isalpha() else backend
    differs = varying(found)
    rows: list[tuple[Words, ...]] = []
    for trial in found:
        row = next((row for row in trial.compiled if row.backend == backend), None)
        rows.append(
            (
                words(setup_name(trial.setup, differs)),
                ms_cell(trial.eager),
                ms_cell(row),
                speedup_cell(row),
                kerneldiff_cell(row),
                compile_cell(row),
            )
        )
    columns = ("Model", "Eager ms", f"{title} ms", "Speed-up", "KernelDiff", "Cold / warm s")
    return _fitting(Table(columns, tuple(rows), (1, 2, 5)), 5, page=reading.page)


def _backends_table(reading: Reading, found: list[Trial]) -> Table:
    """A row for each backend."""
    differs = varying(found)
    rows: list[tuple[Words, ...]] = []
    for trial in found:
        for number, row in enumerate(trial.rows):
            rows.append(
                (
                    words("" if number else setup_name(trial.setup, differs)),
                    words(Span(row.backend, "code")),
                    ms_cell(row),
                    speedup_cell(row),
                    kerneldiff_cell(row),
                    compile_cell(row),
                )
            )
    columns = ("Model", "Backend", "ms", "Speed-up", "KernelDiff", "Cold / warm s")
    return _fitting(Table(columns, tuple(rows), (2, 5)), 5, page=reading.page)


def _fitting(table: Table, spare: int, *, page: bool) -> Table:
    """Without the column that can be spared where a terminal has no room for it."""
    return table if page or _width(table) <= _WIDTH else _without(table, spare)


def _width(table: Table) -> int:
    widest = [
        max([len(name), *(len(plain(row[at])) for row in table.rows)])
        for at, name in enumerate(table.columns)
    ]
    return sum(widest) + 2 * len(widest)


def _without(table: Table, at: int) -> Table:
    rows = tuple((*row[:at], *row[at + 1 :]) for row in table.rows)
    numeric = tuple(n - (n > at) for n in table.numeric if n != at)
    return Table((*table.columns[:at], *table.columns[at + 1 :]), rows, numeric)


def _troubles(found: list[Trial]) -> list[Block]:
    """Errors first, then what a reader must know of the figures, each once."""
    differs = varying(found)
    errors, remarks = [], dict[str, list[str]]()
    for trial in found:
        name = setup_name(trial.setup, differs)
        for row in trial.rows:
            who = f"{name} on {row.backend}"
            if row.error:
                errors.append(
                    Paragraph(words(Span(f"{who}:", "strong"), " ", *prose(row.error)), "!")
                )
            elif row.latency_ms is None:
                remarks.setdefault("not measured.", []).append(who)
            for remark in row.notes:
                remarks.setdefault(remark, []).append(who)
    told = [
        Paragraph(words(Span(f"{_some(whose)}:", "strong"), " ", *prose(remark)), "-")
        for remark, whose in remarks.items()
    ]
    return [*([note("")] if errors or told else []), *errors, *told]


def _some(whose: list[str]) -> str:
    return whose[0] if len(whose) == 1 else f"{whose[0]} and {len(whose) - 1} more"


def benchmark_items(reading: Reading) -> list[Block]:
    """One for each model: bars, and in full all its figures."""
    found = trials(reading.run)
    differs = varying(found)
    items: list[Block] = []
    for number, trial in enumerate(found[:_MOST_MODELS], 1):
        blocks = [*_bars(trial)]
        if reading.full:
            rows = [row for row in trial.rows if row.latency_ms is not None or not row.error]
            beside = max(len(rows), 1) if reading.page else _BESIDE
            for first in range(0, len(rows), beside):
                blocks.append(_figures(rows[first : first + beside]))
        if blocks:
            left = words(Span(setup_name(trial.setup, differs), "strong"))
            items.append(Item(str(number), left, _size(trial), tuple(blocks)))
    if len(found) > _MOST_MODELS:
        items.append(note(f"and {len(found) - _MOST_MODELS:,} more; JSON has them all"))
    return items


def _size(trial: Trial) -> Words:
    known = (row.parameters for row in trial.rows if row.parameters is not None)
    parameters = next(known, None)
    told = [f"{_short_count(parameters)} parameters"] if parameters is not None else []
    return words(Span(", ".join([*told, f"batch {trial.setup.batch}"]), "dim"))


def _short_count(number: int) -> str:
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return (
                f"{number / size:.3g}{unit}"
                if number < 100 * size
                else f"{number / size:.0f}{unit}"
            )
    return str(number)


def _bars(trial: Trial) -> list[Block]:
    rows = [row for row in trial.rows if row.latency_ms is not None and not row.noisy_latency]
    bars = tuple((row.backend, row.latency_ms or 0.0, _bar_text(row)) for row in rows)
    drawn: list[Block] = []
    if rows:
        drawn.append(Measures("", bars, tuple(row.latency_ci_ms for row in rows)))
    # On their scale the other bars would be nothing.
    for row in trial.rows:
        if row.noisy_latency:
            told = f": {TOO_NOISY}, between {interval_text(row)} ms"
            drawn.append(Paragraph(words(Span(row.backend, "code"), Span(told, "warn")), "-"))
    return drawn


def _bar_text(row: Benchmark) -> str:
    """`570.0 [564.3, 575.7] 1.43x`."""
    told = [ms_text(row), interval_text(row)]
    told += [f"{row.speedup:.2f}x"] if row.speedup is not None and row.backend != EAGER else []
    told += ["KernelDiff FAIL"] if row.kerneldiff == "fail" else []
    return " ".join(text for text in told if text)


def _figures(rows: list[Benchmark]) -> Table:
    """A column for each backend, a row for each figure that some of them has."""
    lines: list[_Column] = [
        ("median ms", ms_cell),
        ("95 % interval", lambda row: words(interval_text(row) or "-")),
        ("mean ± std", _mean),
        ("p90 ms", lambda row: words(like_median(row, row.latency_p90_ms))),
        ("outliers", lambda row: words(str(row.outliers) if row.latency_ms is not None else "-")),
        ("runs", lambda row: words(_runs(row))),
        ("samples/s", samples_cell),
        ("speed-up", lambda row: speedup_cell(row, in_words=False)),
        ("compile, cold", lambda row: seconds_cell(row.compile_seconds)),
        ("compile, warm", lambda row: seconds_cell(row.warm_compile_seconds)),
        ("peak memory", bytes_cell),
        ("graphs", lambda row: number_cell(row.graphs)),
        ("graph breaks", lambda row: number_cell(row.breaks)),
        ("recompiles", lambda row: number_cell(row.recompiles)),
        ("violations", lambda row: number_cell(row.violations)),
        ("KernelDiff", kerneldiff_cell),
    ]
    drawn = tuple((words(label), *(cell(row) for row in rows)) for label, cell in lines)
    known = tuple(row for row in drawn if any(plain(cell) != "-" for cell in row[1:]))
    numeric = tuple(range(1, len(rows) + 1))
    return Table(("", *(row.backend for row in rows)), known or drawn[:1], numeric)


def _mean(row: Benchmark) -> Words:
    mean, spread = (like_median(row, each) for each in (row.latency_mean_ms, row.latency_std_ms))
    return words(mean if mean == spread == "-" else f"{mean} ± {spread}")


def _runs(row: Benchmark) -> str:
    runs = [len(process) for process in row.runs_ms]
    if not runs:
        return "-"
    if len(set(runs)) == 1:
        return f"{len(runs)} x {runs[0]}" if len(runs) > 1 else str(runs[0])
    return str(sum(runs))
