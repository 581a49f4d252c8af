"""Two runs side by side, as a document (`analysis.comparison` compares them).

With what became of their caches: what the later run found, and the part of each key that changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.benchmark_changes import (
    BenchmarkComparison,
    compare_benchmarks,
)
from compilescope.knowledge.analysis.benchmarks import is_benchmark
from compilescope.knowledge.analysis.cache_changes import (
    CacheComparison,
    CacheMiss,
    ChangedPart,
    compare_caches,
)
from compilescope.knowledge.analysis.cache_lookups import CACHE_NAMES
from compilescope.knowledge.analysis.comparison import (
    ChangedCount,
    ComparedFigure,
    MovedCause,
    ReclassifiedCause,
    RenamedFile,
    RunComparison,
    compare,
    with_doubts,
    with_relation,
)
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.sweeps import Regressions, is_sweep, regressions, sweep_of
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.run import Run, read_run
from compilescope.report.benchmark_changes import benchmark_comparison_document
from compilescope.report.blocks import (
    Block,
    Document,
    Facts,
    Item,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    Words,
    note,
    words,
)
from compilescope.report.finding import finding_item
from compilescope.report.places import count, first_few, place
from compilescope.report.sweeps import changes_document

_OF_RANK = re.compile(r"^(?P<run>.*)@(?P<rank>\d{1,9})$")


class ComparedRun(NamedTuple):
    """A run, or one rank of it, and what to call it."""

    run: Run
    name: str


class ComparisonDocument(NamedTuple):
    seen: RunComparison | BenchmarkComparison | Regressions
    document: Document


def split_rank(name: str) -> tuple[str, int | None]:
    """`RUN@1` is rank 1 of a run."""
    match = _OF_RANK.match(name)
    return (match["run"], int(match["rank"])) if match is not None else (name, None)


def read_side(folder: Path, rank: int | None = None) -> ComparedRun:
    whole = read_run(folder)
    if rank is None:
        return ComparedRun(whole, whole.header.run)
    ranks = sorted({event.rank for event in whole.events})
    if rank not in ranks:
        there = ", ".join(map(str, ranks)) or "none"
        raise ToolError(f"{whole.header.run} has no rank {rank}. Its ranks: {there}.")
    run = whole.narrowed(lambda event: event.rank == rank)
    return ComparedRun(run, f"{whole.header.run}@{rank}")


def compare_runs(before: ComparedRun, after: ComparedRun) -> ComparisonDocument:
    """Sweeps and benchmarks can only be compared with their own kind."""
    sides = (before, after)
    if _all_are([is_sweep(side.run) for side in sides], sides, "sweep"):
        changes = regressions(sweep_of(before.run), sweep_of(after.run))
        return ComparisonDocument(changes, changes_document(changes, after.run.header.root))
    names = (before.name, after.name)
    if _all_are([is_benchmark(side.run) for side in sides], sides, "benchmark run"):
        measured = compare_benchmarks(before.run, after.run, names)
        return ComparisonDocument(measured, benchmark_comparison_document(measured))
    caches = compare_caches(before.run, after.run)
    seen = compare(digest(before.run), digest(after.run), names, caches)
    seen = with_relation(seen, before.run, after.run)
    seen = with_doubts(seen, before.run, after.run)
    roots = (before.run.header.root, after.run.header.root)
    return ComparisonDocument(seen, comparison_document(seen, roots))


def _all_are(kinds: list[bool], sides: tuple[ComparedRun, ComparedRun], kind: str) -> bool:
    if any(kinds) and not all(kinds):
        other = sides[0].name if kinds[1] else sides[1].name
        raise ToolError(f"{other} is not a {kind}, so it can't be compared with one.")
    return all(kinds)


_MOST = 200
"""Causes of a kind. Chosen: more than people read; the rest is counted."""


def comparison_document(seen: RunComparison, roots: tuple[str, str]) -> Document:
    """The figures; then what went, what came, what moved."""
    summary: list[Block] = []
    if seen.unrelated:
        summary.append(Paragraph(words(Span(_UNRELATED, "warn")), hanging="!"))
    summary += [Paragraph(words(Span(told, "warn")), hanging="!") for told in seen.doubts]
    summary += [_table(seen), note(""), Paragraph(_verdict(seen)), *_torch_words(seen)]
    summary += [_renamed(each) for each in seen.renamed]
    parts = [Part("summary", "", tuple(summary))]
    parts += _cache_parts(seen.caches, roots[1], seen.torch)
    for title, remark, found, root in (
        ("New", "not in the earlier run", seen.new, roots[1]),
        ("Gone", "not in the later run", seen.gone, roots[0]),
    ):
        if found:
            blocks: list[Block] = []
            blocks += [finding_item(n, finding, root) for n, finding in enumerate(found[:_MOST], 1)]
            if len(found) > _MOST:
                blocks.append(note(f"and {len(found) - _MOST} more; see --json"))
            parts.append(Part(title.lower(), title, tuple(blocks), remark))
    if seen.moved:
        moved = tuple(_moved(pair, roots) for pair in seen.moved[:_MOST])
        parts.append(Part("moved", "Moved", moved, "the same cause in another place"))
    if seen.retold:
        retold = tuple(_retold(pair, roots[1]) for pair in seen.retold[:_MOST])
        parts.append(
            Part("retold", "Named otherwise", retold, "the same line, in torch's new words")
        )
    if seen.changed:
        changed = tuple(_changed(pair, roots[1]) for pair in seen.changed[:_MOST])
        parts.append(Part("changed", "Count changed", changed))
    title = f"compilescope compare {seen.before} {seen.after}"
    return Document(title, _subtitle(seen), tuple(parts), root=roots[1])


_UNRELATED = (
    "The two programs have no file and no cause in common, so these are figures of two programs, "
    "not a change of one."
)


def _subtitle(seen: RunComparison) -> str:
    before, after = seen.torch
    if before == after:
        return f"torch {before}" if before else ""
    return f"torch {before or '?'} -> {after or '?'}"


# Why a run compiled again what an earlier one had compiled, in words.


def _verdict(seen: RunComparison) -> Words:
    if seen.equal and seen.doubts:
        return words(f"No difference in what was recorded: {count(seen.same, 'cause')} in both.")
    if seen.equal:
        return words(Span(f"Both runs have the same causes: {seen.same}.", "good"))
    told = []
    if seen.new:
        told.append(Span(f"{count(len(seen.new), 'new cause')}", "bad"))
    if seen.gone:
        told.append(Span(f"{len(seen.gone)} no longer present", "good"))
    if seen.moved:
        told.append(Span(f"{len(seen.moved)} moved"))
    if seen.retold:
        told.append(Span(f"{len(seen.retold)} named otherwise"))
    if seen.changed:
        told.append(Span(f"{len(seen.changed)} with a changed count"))
    told.append(Span(f"{seen.same} unchanged"))
    parts: list[Span] = []
    for number, span in enumerate(told):
        parts += [Span(", ")] if number else []
        parts.append(span)
    return words(*parts, ".")


_MEASURED = "s"
"""The unit of figures that differ from run to run anyway: no torch is praised for them."""


def _torch_words(seen: RunComparison) -> Iterator[Paragraph]:
    """What another torch made better, and what worse."""
    if not seen.other_torch:
        return
    before, after = seen.torch
    better, worse = _steps(seen, better=True), _steps(seen, better=False)
    told: list[str | Span] = [f"Under torch {after} instead of {before}, "]
    if better:
        told += [Span("better", "good"), f": {', '.join(better)}"]
    if worse:
        told += ["; " if better else "", Span("worse", "bad"), f": {', '.join(worse)}"]
    if not better and not worse:
        told.append("no figure is better or worse")
    yield Paragraph(words(*told, "."))


def _steps(seen: RunComparison, *, better: bool) -> list[str]:
    found = []
    for figure in seen.figures:
        before, after = figure.before, figure.after
        if before is None or after is None or before == after:
            continue
        if not figure.better or figure.unit == _MEASURED:
            continue
        if ((after < before) == (figure.better == "less")) == better:
            unit = f" {figure.unit}".rstrip()
            found.append(f"{figure.name} {_text(before)} -> {_text(after)}{unit}")
    return found


def _renamed(pair: RenamedFile) -> Paragraph:
    """A file under another name: its causes are old ones."""
    both = Span(pair.before, "strong"), " is now ", Span(pair.after, "strong")
    return Paragraph(words(*both, f": {count(pair.causes, 'cause')} moved from {pair.before}."))


def _table(seen: RunComparison) -> Table:
    rows = tuple(_row(figure) for figure in seen.figures)
    return Table(("", "before", "after", "change"), rows, (1, 2, 3))


def _row(figure: ComparedFigure) -> tuple[Words, ...]:
    change: Words = ()
    if figure.before is not None and figure.after is not None and figure.before != figure.after:
        step = figure.after - figure.before
        good = (step < 0) == (figure.better == "less")
        style: Style = "plain" if not figure.better else "good" if good else "bad"
        ratio = f" ({figure.after / figure.before:.2f}x)" if figure.before else ""
        change = words(Span(f"{step:+g}" if step % 1 == 0 else f"{step:+.2f}", style), ratio)
    before, after = _number(figure, figure.before), _number(figure, figure.after)
    return words(figure.name), before, after, change


def _number(figure: ComparedFigure, value: float | None) -> Words:
    if value is None:
        return words(Span("unknown", "dim"))
    return words(f"{_text(value)} {figure.unit}".rstrip())


def _text(value: float) -> str:
    return f"{value:g}" if value % 1 == 0 else f"{value:.2f}"


def _moved(pair: MovedCause, roots: tuple[str, str]) -> Item:
    old = place(pair.before.file, pair.before.line, roots[0])
    new = Span(place(pair.after.file, pair.after.line, roots[1]), "strong")
    blocks: list[Block] = [Paragraph(words(pair.after.title))]
    if pair.before.source.split() != pair.after.source.split():
        blocks.append(Paragraph(words(Span(pair.before.source.strip(), "code")), "was:"))
        blocks.append(Paragraph(words(Span(pair.after.source.strip(), "code")), "is:"))
    tags = (f"kind:{pair.after.kind}",)
    return Item("", words(new, f" moved from {old}"), _rule(pair.after), tuple(blocks), tags=tags)


def _retold(pair: ReclassifiedCause, root: str) -> Item:
    blocks = (
        Paragraph(words(pair.before.title), "was:"),
        Paragraph(words(pair.after.title), "is:"),
    )
    return Item(
        "", _where(pair.after, root), _rule(pair.after), blocks, tags=(f"kind:{pair.after.kind}",)
    )


def _changed(pair: ChangedCount, root: str) -> Item:
    times = f"{pair.before.count} times before, {pair.after.count} now"
    blocks = (Paragraph(words(pair.after.title)), note(times))
    return Item(
        "", _where(pair.after, root), _rule(pair.after), blocks, tags=(f"kind:{pair.after.kind}",)
    )


def _where(finding: Finding, root: str) -> Words:
    at = place(finding.file, finding.line, root) if finding.file else "unknown location"
    function = f" in {finding.function}" if finding.function else ""
    return words(Span(at, "strong"), function)


def _rule(finding: Finding) -> Words:
    return words(Span(finding.rule_id, "bad" if finding.level == "error" else "warn"))


_PARTS = {
    "gm": "what was traced",
    "torch_version": "its version or its files",
    "user_defined_triton_source": "Triton kernels",
    "triton_kernel_source_codes": "Triton kernels",
    "cpp_runtime_thread_count": "threads",
    "triton_version": "Triton's version or its files",
    "triton_source": "the kernel",
    "triton_attributes": "what is known of the arguments' values (divisible by 16)",
    "triton_target": "the GPU's architecture",
    "triton_backend": "the version of ptxas",
}
_ITEMS = {
    "example_inputs": "input {}",
    "fx_kwargs": "{}",
    "inductor_config": "{}",
    "triton_signature": "argument {}",
    "triton_constants": "constant {}",
    "triton_options": "{}",
    "triton_environment": "{}",
}
"""Torch's names, where they say more than a reader of settings needs."""
_NOTES = {
    "absent": "An empty cache or another one (`TORCHINDUCTOR_CACHE_DIR`, `TRITON_CACHE_DIR`, "
    "another server), or code that was never saved.",
    "guards": "The code that is there was compiled for other sizes.",
    "unknown": "Torch lists no parts of this key, or one of the runs does not hold them.",
}
_MOST_REASONS = 60
"""Reasons. Chosen: more than people read; JSON has them all."""
Versions = tuple[str | None, str | None]


def _cache_parts(seen: CacheComparison | None, root: str, torch: Versions) -> list[Part]:
    """Nothing where no cache was asked, or all was found both times."""
    if seen is None or seen.lookups == seen.hits:
        return []
    blocks: list[Block] = [Paragraph(_cache_verdict(seen))]
    groups: dict[tuple[object, ...], list[CacheMiss]] = {}
    for miss in seen.missed:
        groups.setdefault((miss.why, miss.parts, miss.reason), []).append(miss)
    shown = list(groups.values())[:_MOST_REASONS]
    blocks += [_item(number, misses, root, torch) for number, misses in enumerate(shown, 1)]
    if len(groups) > _MOST_REASONS:
        blocks.append(note(f"and {len(groups) - _MOST_REASONS} more reasons; see --json"))
    return [Part("caches", "Caches", tuple(blocks), "of torch and Triton")]


def _cache_verdict(seen: CacheComparison) -> Words:
    before, after = (
        f"{hits} of {count(lookups, 'lookup')}"
        for hits, lookups in zip(seen.hits, seen.lookups, strict=True)
    )
    return words(f"Found: {before} before, {after} after.")


def _item(number: int, misses: list[CacheMiss], root: str, torch: Versions) -> Item:
    first = misses[0]
    blocks: list[Block] = []
    if first.parts:
        blocks.append(Facts(_facts(first.parts, torch)))
    elif first.why in _NOTES:
        blocks.append(note(_NOTES[first.why]))
    blocks += [note(f"{at}: {names}") for at, names in _places(misses, root).items()]
    return Item(str(number), _heading(first), (), tuple(blocks), tags=(f"why:{first.why}",))


def _heading(miss: CacheMiss) -> Words:
    if miss.why == "key":
        kinds = ", ".join(dict.fromkeys(part.kind for part in miss.parts))
        return words("The key differs: ", Span(kinds, "strong"))
    if miss.why == "bypass":
        return words(Span("The cache was bypassed: ", "strong"), miss.reason or "no reason given")
    return words(
        {
            "absent": "The key is the same, and there was no entry",
            "guards": "The key is the same, and no entry fits",
            "new": "Not compiled in the earlier run",
            "unknown": "The key differs, in what is not known",
        }[miss.why]
    )


def _facts(parts: tuple[ChangedPart, ...], torch: Versions) -> tuple[tuple[str, Words], ...]:
    rows: dict[str, list[str]] = {}
    for part in parts:
        rows.setdefault(part.kind, []).append(_part(part, torch))
    return tuple((kind, words(first_few(told))) for kind, told in rows.items())


def _part(part: ChangedPart, torch: Versions) -> str:
    before, after = part.before, part.after
    if part.kind == "torch" and torch[0] != torch[1]:
        return f"{torch[0] or '?'} -> {torch[1] or '?'}"
    name = _name(part.name)
    if part.kind == "source" and name == part.name:
        return f"{name} was edited"
    # Of what is too long to be kept, and of a tensor's rarer properties, there is nothing to show.
    return name if before == after else f"{name} {before or '(long)'} -> {after or '(long)'}"


def _name(name: str) -> str:
    group, bracket, item = name.partition("[")
    if bracket and group in _ITEMS:
        return _ITEMS[group].format(item.removesuffix("]"))
    return _PARTS.get(name, _PARTS.get(group, name))


def _places(misses: list[CacheMiss], root: str) -> dict[str, str]:
    """Each place once, with the caches that were asked for it."""
    found: dict[str, list[str]] = {}
    for miss in misses:
        at = place(miss.file, miss.line, root) + (f" in {miss.function}" if miss.function else "")
        if miss.function and not miss.file:
            at = f"kernel {miss.function}"
        cache = f"{CACHE_NAMES.get(miss.cache, miss.cache)} {miss.direction}".rstrip()
        found.setdefault(at, []).append(cache)
    return {at: first_few(_counted(names)) for at, names in found.items()}


def _counted(names: list[str]) -> list[str]:
    times = {name: names.count(name) for name in dict.fromkeys(names)}
    return [name if number == 1 else f"{name} ({number} times)" for name, number in times.items()]
