"""What to do about a cause, drawn the same wherever it is told: the change and its worth."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.findings.finding import Finding
from compilescope.findings.remedy import Advice, Status
from compilescope.report.blocks import Block, Diff, Fold, Paragraph, note, prose, words
from compilescope.report.render.code_lines import diff_kind

_LABELS: dict[Status, str] = {
    "proven": "Verified:",
    "proposed": "Try:",
    "by hand": "By hand:",
    "not tried": "Not tried:",
}
_UNPROVEN = "unverified; `compilescope fix` can verify it"
_UNPROVEN_IN_PYTHON = "unverified"
_UNPROVEN_IN_LOG = "unverified: a log has no program to run"
_UNPROVEN_FROM_STDIN = (
    "unverified; save the program in a file, and `compilescope fix` can verify it"
)
_PROVEN = "verified: with this change the cause is gone and the results are the same"
_MOST_LINES = 24
"""Of a diff in a summary. Chosen: a summary stays a screen or two."""


class ShownAdvice(msgspec.Struct, frozen=True):
    """What one document has shown of changes so far: each change is shown once."""

    in_python: bool = False
    """Read in a notebook, where nobody can type a command."""
    from_log: bool = False
    """Of a log, whose program may be anywhere."""
    from_stdin: bool = False
    """Of a program that is in no file."""
    folding: bool = False
    """Read on a page, where what only some readers want can be folded away."""
    places: dict[str, str] = msgspec.field(default_factory=dict)
    """By its text: where each change was shown first."""
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    """By its words: where each advice was given first."""


def advice_blocks(
    advice: tuple[Advice, ...], told: ShownAdvice, where: str, *, brief: bool
) -> list[Block]:
    """In a summary the first alone; else all."""
    drawn = _drawn(advice[:1] if brief else advice, told, where, brief=brief)
    first, others = next(drawn, []), [block for blocks in drawn for block in blocks]
    if not told.folding or not others:
        return [*first, *others]
    ways = "1 other way" if len(advice) == 2 else f"{len(advice) - 1} other ways"
    return [*first, Fold(words(ways), tuple(others))]


def _drawn(
    advice: tuple[Advice, ...], told: ShownAdvice, where: str, *, brief: bool
) -> Iterator[list[Block]]:
    for number, each in enumerate(advice):
        blocks: list[Block] = []
        label = _LABELS[each.status] if not number else "Or:"
        first = told.places.get(each.diff) if each.diff else None
        before = told.texts.setdefault(each.text, where)
        if first is not None and first == before != where:
            yield [Paragraph(words(f"same as {first}"), label)]
            continue
        # Others than the first are for a reader who will not take that one: no diff, but the id.
        fix = f"`{each.fix}`: " if number and each.diff and first is None else ""
        blocks.append(Paragraph(prose(fix + each.text), label))
        if first is not None and first != where:
            blocks.append(note(f"same change as for {first}"))
        elif each.diff and first is None and not number:
            told.places[each.diff] = where
            blocks.append(_diff(each, told, brief=brief))
            blocks.append(note(_worth(each, told)))
        yield blocks


def advice_text(finding: Finding) -> str:
    """What to try first, as plain text: for formats that carry sentences."""
    if not finding.advice:
        return f"By hand: {finding.first_step}" if finding.first_step else ""
    first = finding.advice[0]
    label = _LABELS[first.status]
    if not first.diff:
        return f"{label} {first.text}"
    worth = _worth(first, ShownAdvice()).replace("`", "")
    return f"{label} {first.text} ({worth})\n{first.diff.rstrip()}"


def _worth(advice: Advice, told: ShownAdvice) -> str:
    if advice.status == "proven":
        return _PROVEN
    if told.from_log:
        return _UNPROVEN_IN_LOG
    if told.from_stdin:
        return _UNPROVEN_FROM_STDIN
    return _UNPROVEN_IN_PYTHON if told.in_python else _UNPROVEN


def _diff(advice: Advice, told: ShownAdvice, *, brief: bool) -> Block:
    if not brief:
        return Diff(advice.diff)
    lines = _gist(advice.diff)
    if len(lines) <= _MOST_LINES:
        return Diff("\n".join(lines) + "\n")
    more = "`.digest` has it" if told.in_python else "`compilescope explain` shows it"
    return note(f"a {len(lines)}-line change; {more}")


def _gist(diff: str) -> list[str]:
    """The changed lines, each stretch with one line before and after it, and its place."""
    lines = diff.splitlines()
    kinds = [diff_kind(line) for line in lines]
    files = sum(line.startswith("+++ ") for line in lines)
    near = {
        number + step
        for number, kind in enumerate(kinds)
        if kind in ("added", "removed")
        for step in (-1, 0, 1)
    }
    return [
        line
        for number, (line, kind) in enumerate(zip(lines, kinds, strict=True))
        if (kind == "file" and files > 1)
        or (kind == "place" and (files > 1 or kinds.count("place") > 1))
        or (number in near and kind not in ("file", "place"))
    ]
