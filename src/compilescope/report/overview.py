"""What a report on several runs begins with: how many pass, the worst, and what stands now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from compilescope.knowledge.analysis.check_results import CheckState
from compilescope.knowledge.analysis.overview import Overview, RunStanding, Tally
from compilescope.report.blocks import (
    Document,
    Figure,
    Figures,
    Part,
    Span,
    Style,
    Table,
    Words,
    note,
    words,
)
from compilescope.report.places import count

_CHECKS = (("constraints", "constraints"), ("numbers", "numbers (KernelDiff)"), ("gate", "gate"))
_STATES: dict[CheckState, tuple[str, Style]] = {
    "pass": ("pass", "good"),
    "fail": ("fail", "bad"),
    "unknown": ("unknown", "warn"),
    "unchecked": ("-", "dim"),
}
_MOST_NAMES = 3
"""Chosen: a sentence with three names can still be read."""


def overview_document(seen: Overview, anchors: dict[str, str], gate: str) -> Document:
    """`anchors`: where the report of each run begins, on a page. `gate`: what the gate asks."""
    parts = [Part("overview", "", (_figures(seen), note(gate)))]
    ids = _short_ids(row.run for row in seen.all)
    programs = _short({row.program for row in seen.all})
    of = {row.run: programs[row.program] for row in seen.all}
    rows = [
        (words(label), _run(worst.run, ids, anchors), words(f"{of[worst.run]}: {worst.text}"))
        for name, label in _CHECKS
        if (worst := getattr(seen, name).worst) is not None
    ]
    if rows:
        table = Table(("check", "run", "what"), tuple(rows))
        parts.append(Part("worst", "Worst of each", (table,)))
    parts.append(_part("now", "Where each program stands", seen.now, ids, anchors))
    if len(seen.all) > len(seen.now):
        earlier = [row for row in seen.all if row not in seen.now]
        parts.append(_part("earlier", "Earlier runs", tuple(earlier), ids, anchors))
    return Document(f"compilescope report on {count(seen.runs, 'run')}", "", tuple(parts))


def _figures(seen: Overview) -> Figures:
    shown = [
        Figure(str(seen.runs), "runs"),
        Figure(str(len(seen.programs)), "programs tested", _names(seen.programs)),
        *_models(seen),
        *(_rate(label, getattr(seen, name)) for name, label in _CHECKS),
    ]
    return Figures(tuple(shown))


def _models(seen: Overview) -> list[Figure]:
    """Only comparisons, benchmarks, sweeps and violations name a model."""
    if not seen.models:
        return []
    return [Figure(str(len(seen.models)), "models tested", _names(seen.models))]


def _names(names: tuple[str, ...]) -> str:
    names = tuple(_short(names).values())
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _short(names: Iterable[str]) -> dict[str, str]:
    """Programs by their file alone, where that tells them apart."""
    brief = {name: name.rpartition("/")[2] or name for name in names}
    many = Counter(brief.values())
    return {name: short if many[short] == 1 else name for name, short in brief.items()}


def _short_ids(runs: Iterable[str]) -> dict[str, str]:
    """IDs without the name after them, which every command takes, where that tells them apart:
    a table has the program beside it."""
    brief = {run: run.partition("-")[0] for run in runs}
    many = Counter(brief.values())
    return {run: short if many[short] == 1 else run for run, short in brief.items()}


def _rate(label: str, tally: Tally) -> Figure:
    """Of the runs that were checked; the others are counted beside it."""
    counted = (
        (tally.failed, "failed"),
        (tally.unknown, "inconclusive"),
        (tally.unchecked, "not checked"),
    )
    said = ", ".join(f"{number} {word}" for number, word in counted if number)
    if not tally.checked:
        return Figure("-", f"{label} passed", said)
    style: Style = "bad" if tally.failed else "warn" if tally.unknown else "good"
    share = f"{100 * tally.passed // tally.checked} %"
    return Figure(
        f"{tally.passed} of {tally.checked}",
        f"{label} passed",
        ", ".join(text for text in (share, said) if text),
        style,
    )


def status_style(status: str) -> Style:
    """What nobody saw fail is not red: of a program that records itself the status is not seen."""
    if status in ("ok", "ended", "open", "running"):
        return "plain"
    return "warn" if status == "cut short" else "bad"


def _part(
    id: str,
    title: str,
    rows: tuple[RunStanding, ...],
    ids: dict[str, str],
    anchors: dict[str, str],
) -> Part:
    columns = ("run", "program", "status", "constraints", "numbers", "gate", "causes")
    names = _short({row.program for row in rows})
    table = Table(
        columns,
        tuple(
            (
                _run(row.run, ids, anchors),
                words(names[row.program]),
                words(Span(row.status, status_style(row.status))),
                *(_state(getattr(row, name)) for name, _ in _CHECKS),
                words("-" if row.causes is None else str(row.causes)),
            )
            for row in rows
        ),
        (6,),
        one_line=1,
    )
    legend = note(
        "`-`: not checked, or not recorded. `causes`: graph breaks, recompiles, failures and "
        "operations whose numbers differ, each once."
    )
    now = id == "now"
    return Part(id, title, (table, legend) if now else (table,), "newest run of each" * now)


def _state(state: CheckState) -> Words:
    return words(Span(*_STATES[state]))


def _run(run: str, ids: dict[str, str], anchors: dict[str, str]) -> Words:
    return words(Span(ids[run], "strong", anchors.get(run, "")))
