"""What to do about a cause, drawn the same wherever it is told: the change and its worth."""

from __future__ import annotations

from compilescope.report.blocks import Block, Diff, Paragraph, note, prose
from compilescope.report.render.diffs import diff_kind
from compilescope.rules.causes.advice import Advice, Status
from compilescope.rules.findings import Finding

_LABELS: dict[Status, str] = {"proven": "Proven:", "proposed": "Try:", "by hand": "By hand:"}
_UNPROVEN = "not proven yet; `compilescope fix` proves it"
_PROVEN = "proven: it was run, the cause was gone and the results were the same"
_MOST_LINES = 24
"""Of a diff in a summary."""


def advice_blocks(
    advice: tuple[Advice, ...], told: dict[str, str], where: str, *, brief: bool
) -> list[Block]:
    """In a summary the first alone; else all. `told` is where each diff was shown first: one change
    that mends several causes is shown once."""
    blocks: list[Block] = []
    for number, each in enumerate(advice[:1] if brief else advice):
        blocks.append(Paragraph(prose(each.text), _LABELS[each.status] if not number else "Or:"))
        if not each.diff:
            continue
        if each.diff in told:
            if told[each.diff] != where:
                blocks.append(note(f"the same change as for {told[each.diff]}"))
            continue
        if number:
            # Others than the first are for a reader who will not take that one.
            blocks.append(note(f"`{each.fix}`; {_worth(each)}"))
            continue
        told[each.diff] = where
        blocks.append(_diff(each, brief=brief))
        blocks.append(note(_worth(each)))
    return blocks


def advice_text(finding: Finding) -> str:
    """What to try first, as plain text: for formats that carry sentences."""
    if not finding.advice:
        return f"By hand: {finding.remedy}" if finding.remedy else ""
    first = finding.advice[0]
    label = _LABELS[first.status]
    if not first.diff:
        return f"{label} {first.text}"
    return f"{label} {first.text} ({_worth(first).replace('`', '')})\n{first.diff.rstrip()}"


def _worth(advice: Advice) -> str:
    return _PROVEN if advice.status == "proven" else _UNPROVEN


def _diff(advice: Advice, *, brief: bool) -> Block:
    if not brief:
        return Diff(advice.diff)
    lines = _gist(advice.diff)
    if len(lines) <= _MOST_LINES:
        return Diff("\n".join(lines) + "\n")
    return note(f"a change of {len(lines)} lines; `compilescope explain` shows it")


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
