"""The gate's judgement as a document: verdict, each check, each cause that counts, what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from compilescope.knowledge.analysis.findings import by_cost
from compilescope.knowledge.analysis.gate.terms import each_once
from compilescope.knowledge.analysis.gate.verdict import AcceptedFinding, Judgement, unsure_of
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.registry.pages import Pages
from compilescope.record.body import Verdict
from compilescope.record.outcomes import JudgedLimit
from compilescope.report.blocks import (
    Block,
    Document,
    Paragraph,
    Part,
    ShownRun,
    Span,
    Style,
    Table,
    Words,
    note,
    words,
)
from compilescope.report.finding import finding_item
from compilescope.report.places import count

_VERDICTS: dict[Verdict, tuple[str, Style]] = {
    "pass": ("PASS", "good"),
    "fail": ("FAIL", "bad"),
    "unknown": ("INCONCLUSIVE", "warn"),
}
_OUTCOMES: dict[Verdict, str] = {"pass": "ok", "fail": "too many", "unknown": "inconclusive"}
# Chosen: what is read in a CI log; the rest is counted.
_MOST_CAUSES = 20
_MOST_GONE = 10


class GateTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the run was held against, and where that stands."""

    own: bool = False
    baseline: str = ""
    """The file; empty where there was none."""
    baseline_torch: str | None = None
    project: str = ""
    """The pyproject.toml that the limits come from; empty where none gave any."""
    accept: str = ""
    """The command that accepts what was found."""
    by_default: bool = False
    """Nobody gave a limit or a baseline."""
    more: str = ""
    """The command that tells more."""
    against: str = ""
    """The earlier benchmark run; empty: eager mode."""
    differences: tuple[str, ...] = ()
    """Between its machine and this one's."""


def gate_document(
    judgement: Judgement,
    terms: GateTerms,
    *,
    root: str,
    record: ShownRun,
    pages: Pages | None = None,
) -> Document:
    against = judgement.against
    told = verdict_words(judgement.outcome, judgement.checks)
    parts = [Part("verdict", "", (Paragraph(told), limits_table(judgement.checks)))]
    if against:
        title = "New causes" if against == each_once(judgement.new) else "Causes"
        parts.append(
            Part(
                "causes",
                title,
                tuple(_causes(against, root, pages)),
                "in the order to look at them",
            )
        )
    parts.append(Part("terms", "", tuple(_terms(judgement, terms, record))))
    command = " ".join(" ".join(record.command).split())
    torch = f"torch {record.torch}" if record.torch else ""
    return Document(
        title=f"compilescope check {record.run}",
        subtitle=" · ".join(text for text in (command, torch) if text),
        parts=tuple(parts),
        root=root,
        record=record,
    )


def verdict_words(outcome: Verdict, checks: Sequence[JudgedLimit]) -> Words:
    label, style = _VERDICTS[outcome]
    unsure = [check.message for check in unsure_of(checks)]
    told = [check.message for check in checks if check.outcome == "fail"] or unsure
    sentence = f": {'; '.join(told or _held(checks))}."
    if outcome == "fail" and unsure:
        sentence += f" Also, {'; '.join(unsure)}."
    return words(Span(label, style), sentence)


def _held(checks: Sequence[JudgedLimit]) -> list[str]:
    limits = sum(check.name != "baseline" for check in checks)
    held = [f"within {'the limit' if limits == 1 else f'all {limits} limits'}"] if limits else []
    return held + [check.message for check in checks if check.name == "baseline"]


def limits_table(checks: Iterable[JudgedLimit]) -> Table:
    rows = []
    for check in checks:
        outcome = Span(_OUTCOMES[check.outcome], _VERDICTS[check.outcome][1])
        if check.name == "coverage" and check.outcome == "fail":
            outcome = Span("too little", "bad")
        elif check.name == "baseline" and check.outcome == "fail":
            outcome = Span("new", "bad")
        elif check.name == "slowdown" and check.outcome == "fail":
            outcome = Span("too slow", "bad")
        name = f"{check.name} of {check.subject}" if check.subject else check.name
        rows.append((words(name), words(_found(check)), words(_allowed(check)), words(outcome)))
    return Table(("check", "found", "allowed", ""), tuple(rows), numeric=(1, 2))


def _found(check: JudgedLimit) -> str:
    if check.found is None:
        return "?" if check.limit is not None else ""
    if check.name == "slowdown":
        return f"{check.found:.2f}x"
    if check.outcome == "unknown":
        return f"so far {check.found:g}"
    if check.name == "coverage":
        # Rounded down, as in the message: it must not look like the limit that it misses.
        return f"{math.floor(check.found * 10) / 10:.1f} %"
    return f"{check.found:g}"


def _allowed(check: JudgedLimit) -> str:
    if check.limit is None:
        return ""
    if check.name == "baseline":
        return "known only"
    if check.name == "slowdown":
        return f"{check.limit:g}x"
    return f">= {check.limit:g} %" if check.name == "coverage" else f"{check.limit:g}"


def _causes(against: tuple[Finding, ...], root: str, pages: Pages | None) -> list[Block]:
    shown = by_cost(against)[:_MOST_CAUSES]
    blocks: list[Block] = [
        finding_item(n, finding, root, pages) for n, finding in enumerate(shown, 1)
    ]
    if len(against) > len(shown):
        blocks += [note(""), note(f"and {count(len(against) - len(shown), 'more cause')}")]
    return blocks


def _terms(judgement: Judgement, terms: GateTerms, record: ShownRun) -> list[Block]:
    lines: list[Block] = [note("")]
    if terms.baseline:
        lines.append(note(_baseline_words(judgement, terms, record)))
    if terms.against:
        lines.append(note(f"Slowdowns are relative to the run {terms.against}."))
        lines += [Paragraph(words(Span(each, "warn")), hanging="!") for each in terms.differences]
    if terms.project:
        lines.append(note(f"Limits from {terms.project}."))
    if terms.by_default:
        lines.append(
            note(
                "No limits or baseline were given, so any graph break, recompile, "
                "eager fallback or failure counts."
            )
        )
    if terms.own:
        lines.append(note("Only causes in your own files count (--own)."))
    whole = not any(check.outcome == "unknown" for check in judgement.checks)
    if judgement.gone and whole:
        lines += _gone(judgement.gone)
    if judgement.acceptable and terms.accept:
        lines.append(_command("To accept all of it:", terms.accept))
    if terms.more:
        lines.append(_command("To see more:", terms.more))
    return lines


def _baseline_words(judgement: Judgement, terms: GateTerms, record: ShownRun) -> str:
    known = count(len(judgement.known), "cause")
    text = f"Checked against the baseline {terms.baseline}, which accepts {known} of this run."
    if terms.baseline_torch and record.torch and terms.baseline_torch != record.torch:
        text += (
            f" It was made with torch {terms.baseline_torch}; torch {record.torch} may name "
            "the same causes differently."
        )
    return text


def _gone(gone: tuple[AcceptedFinding, ...]) -> list[Block]:
    are, them = ("is", "it") if len(gone) == 1 else ("are", "them")
    head = (
        f"{count(len(gone), 'cause')} in the baseline {are} no longer present; "
        f"--update-baseline removes {them}:"
    )
    lines: list[Block] = [note(head)]
    for known in gone[:_MOST_GONE]:
        lines.append(Paragraph(words(Span(_known_words(known), "dim")), "-"))
    if len(gone) > _MOST_GONE:
        lines.append(note(f"and {len(gone) - _MOST_GONE} more"))
    return lines


def _known_words(known: AcceptedFinding) -> str:
    where = " in ".join(text for text in (known.file, known.function) if text)
    return f"{known.title} ({where})" if where else known.title


def update_document(
    added: Iterable[Finding],
    removed: tuple[AcceptedFinding, ...],
    kept: int,
    *,
    file: str,
    root: str,
) -> Document:
    """What --update-baseline wrote."""
    new, blocks = tuple(added), []
    for number, finding in enumerate(new, 1):
        blocks.append(finding_item(number, finding, root))
    dropped = [Paragraph(words(_known_words(known)), "-") for known in removed]
    total = count(kept + len(new), "cause")
    head = words(
        Span(f"{file} now accepts {total}", "good"),
        f": {len(new)} added, {len(removed)} removed, {kept} kept.",
    )
    parts = [Part("baseline", "", (Paragraph(head),))]
    if blocks:
        parts.append(Part("added", "Added", tuple(blocks)))
    if dropped:
        parts.append(Part("removed", "Removed", tuple(dropped)))
    return Document("compilescope check --update-baseline", "", tuple(parts), root=root)


def _command(label: str, command: str) -> Paragraph:
    return Paragraph(words(f"{label} ", Span(command, "code")))
