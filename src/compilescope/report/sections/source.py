"""The files that lost something, line by line, with a gutter of what each line lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from compilescope.knowledge.analysis.line_costs import (
    FileLoss,
    LineAmount,
    LineLoss,
    captured_lines,
    file_losses,
    stripes,
    with_kernels,
)
from compilescope.knowledge.analysis.stages.source import Functions
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.bodies import StepsProfiled
from compilescope.report.blocks import (
    Block,
    GutterCell,
    MarkedLine,
    MarkedLines,
    SourceFile,
    Stripe,
    note,
)
from compilescope.report.links import line_target
from compilescope.report.places import anchor_of, count, shown_path
from compilescope.report.render.spans import duration
from compilescope.report.section import MOST_FILES, Reading, Section

# Lines of a file that is shown whole. Chosen: longer ones are shown around their losses only.
_LONGEST_WHOLE = 3_000
_AROUND = 6
"""Lines shown before and after a loss, where the file is not shown whole. Chosen: most functions
can then be recognized."""
# Files that are open when the page is. Chosen: those that lost most.
_UNFOLDED = 2
_ROOM = 230_000
"""About how many characters of code the section may show: its page stays light. Chosen;
benchmarks/big_runs.py holds a page to 3 MB."""
_LEAST_ROOM = 4_000
"""The same for a file that comes when the room is used up. Chosen: a function of fifty lines."""
_LINE_COST = 25
"""What a line takes beside its characters. Chosen, for the markup around it."""
_LOSS_COST = 300
"""What the gutter of a line takes that lost something. Chosen: likewise."""
_LONGEST_LINE = 400
"""Letters. Chosen: as in the panes of graphs."""
BREAKS, RECOMPILES, FAILED, EAGER = "Breaks", "Recompiles", "Failed", "Eager"
COMPILE, OUTSIDE, KERNELS = "Compile time", "Outside graphs", "Kernels"
COLUMNS = (FAILED, BREAKS, RECOMPILES, EAGER, COMPILE, OUTSIDE, KERNELS)


def _build(reading: Reading) -> list[Block]:
    losses = _losses(reading)
    if not losses:
        return []
    captured = captured_lines(reading.run)
    functions = Functions(reading.sources)
    most = _Most(losses)
    room = _ROOM
    blocks: list[Block] = []
    for number, loss in enumerate(losses[:MOST_FILES], 1):
        stretches, left_out = _shown(loss, reading, room)
        room -= sum(_weight(stretch.lines) for stretch in stretches)
        shown = {n for part in stretches for n in range(part.first_line, _end(part))}
        kinds = stripes(
            [frame for line in loss.lines for frame in line.eager],
            captured.get(loss.file, set()),
            functions.spans(loss.file),
        )
        marked = tuple(_marked(line, most) for line in loss.lines if line.line in shown)
        cells = {cell.column for line in marked for cell in line.cells}
        blocks.append(
            SourceFile(
                shown_path(loss.file, reading.root),
                number,
                _summary(loss),
                tuple(name for name in COLUMNS if name in cells),
                stretches,
                _with_starts(marked, loss, reading, shown),
                tuple(_runs({n: kind for n, kind in kinds.items() if n in shown})),
                left_out,
                number <= _UNFOLDED and loss.own,
                dict(_links(loss, reading, shown)),
            )
        )
    if len(losses) > MOST_FILES:
        blocks.append(note(f"and {count(len(losses) - MOST_FILES, 'more file')}"))
    return blocks


def _losses(reading: Reading) -> list[FileLoss]:
    losses = file_losses(reading.digest)
    if not reading.run.count(StepsProfiled):
        return losses
    from compilescope.report.step_rows import line_kernels

    return with_kernels(losses, line_kernels(reading))


class _Most:
    """The most that any line lost, of each kind of time."""

    def __init__(self, losses: list[FileLoss]) -> None:
        lines = [line for loss in losses for line in loss.lines]
        self.seconds = max((_seconds(line) for line in lines), default=0.0)
        self.ms = max((line.lost_ms or 0.0 for line in lines), default=0.0)
        self.kernel_ms = max((line.kernel_ms or 0.0 for line in lines), default=0.0)


def _seconds(line: LineLoss) -> float:
    return line.compile_seconds.value if line.compile_seconds is not None else 0.0


def _shown(loss: FileLoss, reading: Reading, room: int) -> tuple[tuple[MarkedLines, ...], str]:
    """The whole file where there is room; else what is near a loss, and a word on that."""
    lines = [_cut(line) for line in reading.sources.lines(loss.file)]
    wanted = {line.line: None for line in loss.lines}
    if not lines or max(wanted) > len(lines):
        # The text is missing, or is that of another version of the file.
        known = {line.line: next((c.source for c in line.causes), "") for line in loss.lines}
        parts = tuple(_stretches(known, room, wanted))
        said = "The run does not hold the text of this file: only these lines are known."
        left = len(known) - sum(len(part.lines) for part in parts)
        return parts, said + (f" {count(left, 'more line')} not drawn." if left else "")
    if len(lines) <= _LONGEST_WHOLE and _weight(lines) <= room:
        return (MarkedLines(1, tuple(lines)),), ""
    near = {
        number: lines[number - 1]
        for line in wanted
        for number in range(max(line - _AROUND, 1), min(line + _AROUND, len(lines)) + 1)
    }
    parts = tuple(_stretches(near, room, wanted))
    shown = sum(len(part.lines) for part in parts)
    return parts, f"{shown} of {len(lines)} lines, those near a loss."


def _stretches(texts: dict[int, str], room: int, losing: Collection[int]) -> Iterator[MarkedLines]:
    """As many as there is room for, and the first lines in any case."""
    room = max(room, _LEAST_ROOM)
    for first, last in _spans(set(texts)):
        lines = []
        for number in range(first, last + 1):
            lines.append(_cut(texts[number]))
            room -= _weight(lines[-1:]) + _LOSS_COST * (number in losing)
            if room < 0:
                break
        yield MarkedLines(first, tuple(lines))
        if room < 0:
            break


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "…"


def _weight(lines: Iterable[str]) -> int:
    return sum(len(line) + _LINE_COST for line in lines)


def _end(part: MarkedLines) -> int:
    return part.first_line + len(part.lines)


def _spans(numbers: set[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of numbers."""
    first = last = 0
    for number in sorted(numbers):
        if first and number != last + 1:
            yield first, last
            first = number
        first, last = first or number, number
    if first:
        yield first, last


def _runs(kinds: dict[int, str]) -> Iterator[Stripe]:
    for kind in ("graph", "eager", "both"):
        for first, last in _spans({n for n, each in kinds.items() if each == kind}):
            yield Stripe(first, last, kind)


def _marked(line: LineLoss, most: _Most) -> MarkedLine:
    # Of several expressions the costliest is underlined.
    placed = next((each for each in line.causes if each.column is not None), None)
    cells = tuple(_cells(line, most))
    if placed is None:
        return MarkedLine(line.line, cells)
    end = placed.end_line if placed.end_line and placed.end_line > placed.line else None
    return MarkedLine(line.line, cells, placed.column, placed.end_column, end)


def _with_starts(
    marked: tuple[MarkedLine, ...], loss: FileLoss, reading: Reading, shown: set[int]
) -> tuple[MarkedLine, ...]:
    """And the first lines of recompiled functions, which items name as their place."""
    known = {line.line for line in marked}
    starts = {line for _, line in _links(loss, reading, shown)} - known
    return tuple(sorted((*marked, *map(MarkedLine, starts)), key=lambda line: line.line))


def _links(loss: FileLoss, reading: Reading, shown: set[int]) -> Iterator[tuple[str, int]]:
    for line in loss.lines:
        if line.line in shown:
            yield from (
                (anchor_of(each), line.line) for each in line.causes if each.kind != "recompile"
            )
            yield from ((f"eager-{frame.because[0]}", line.line) for frame in line.eager)
            if line.kernels:
                yield line_target(loss.file, line.line), line.line
    for frame in reading.digest.recompiles:
        if frame.file == loss.file and frame.line in shown and frame.because:
            yield f"recompile-{frame.because[0]}", frame.line


def _cells(line: LineLoss, most: _Most) -> Iterator[GutterCell]:
    by_kind: dict[str, list[Finding]] = {}
    for cause in line.causes:
        by_kind.setdefault(cause.kind, []).append(cause)
    failed, broken = by_kind.get("failure", []), by_kind.get("break", [])
    again = by_kind.get("recompile", [])
    if failed:
        said = _told(failed, count(line.failures, "failed compilation"))
        yield GutterCell(FAILED, str(line.failures), said, anchor_of(failed[0]))
    if broken:
        said = _told(broken, count(line.breaks, "graph break") + " reported")
        yield GutterCell(BREAKS, str(line.breaks), said, anchor_of(broken[0]))
    if again:
        amount = line.recompiles
        said = _told(again, _at_least(amount) + count(int(amount.value), "recompile"))
        shown = f"{int(amount.value)}{'+' if amount.at_least else ''}"
        yield GutterCell(RECOMPILES, shown, said, anchor_of(again[0]))
    if line.eager:
        yield _eager(line)
    if line.compile_seconds is not None:
        amount = line.compile_seconds
        taken = duration(amount.value * 1e9)
        yield GutterCell(
            COMPILE,
            taken + ("+" if amount.at_least else ""),
            f"{_at_least(amount)}{taken} of compile time",
            heat=_share(amount.value, most.seconds),
        )
    if line.lost_ms is not None:
        taken = f"{line.lost_ms:.1f} ms"
        said = f"{taken} outside compiled graphs"
        yield GutterCell(OUTSIDE, taken, said, heat=_share(line.lost_ms, most.ms))
    if line.kernel_ms is not None:
        taken = f"{line.kernel_ms:.3g} ms"
        # A fused kernel is in the time of each of its lines.
        said = f"{taken} of a step in {count(line.kernels, 'kernel')} that compute it"
        yield GutterCell(KERNELS, taken, said, "step", _share(line.kernel_ms, most.kernel_ms))


def _eager(line: LineLoss) -> GutterCell:
    frame = min(line.eager, key=lambda each: each.rest_only)
    text = "rest" if frame.rest_only else "yes"
    part = f"the rest of {frame.function}" if frame.rest_only else frame.function
    return GutterCell(
        EAGER, text, f"{part} runs eagerly: {frame.reason}", f"eager-{frame.because[0]}"
    )


def _told(causes: list[Finding], amount: str) -> str:
    return f"{amount}: {'; '.join(dict.fromkeys(each.title for each in causes))}"


def _at_least(amount: LineAmount) -> str:
    return "at least " if amount.at_least else ""


def _share(value: float, most: float) -> float:
    return round(value / most, 3) if most > 0 else 0.0


def _summary(loss: FileLoss) -> str:
    parts = []
    breaks = sum(line.breaks for line in loss.lines)
    causes = [cause for line in loss.lines for cause in line.causes]
    guards = sum(cause.kind == "recompile" for cause in causes)
    eager = {frame.function for line in loss.lines for frame in line.eager}
    failures = sum(line.failures for line in loss.lines)
    lost = sum(line.lost_ms or 0.0 for line in loss.lines)
    if failures:
        parts.append(count(failures, "failed compilation"))
    if breaks:
        lines = sum(bool(line.breaks) for line in loss.lines)
        parts.append(f"graph breaks on {count(lines, 'line')}")
    if guards:
        parts.append(f"{count(guards, 'guard')} caused recompiles")
    if eager:
        parts.append(f"{count(len(eager), 'function')} fell back to eager")
    if lost:
        parts.append(f"{lost:.1f} ms outside graphs")
    if kernels := sum(bool(line.kernels) for line in loss.lines):
        parts.append(f"kernels of {count(kernels, 'line')}")
    return " · ".join(parts)


SECTION = Section("source", 47, _build, "Your source", "what each line costs", in_summary=False)
