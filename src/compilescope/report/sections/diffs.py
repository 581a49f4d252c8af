"""Where numbers part ways: what differs first, with its errors; what agrees in one table."""

from __future__ import annotations

import math

from compilescope.knowledge.analysis.benchmarks import is_benchmark
from compilescope.knowledge.findings.differences import DifferenceFinding
from compilescope.record.bodies import DiffOutcome, TensorDiff
from compilescope.record.outcomes import ErrorGrid, ErrorProfile
from compilescope.report.blocks import (
    Block,
    Excerpt,
    Facts,
    Fold,
    Heatmap,
    Item,
    Paragraph,
    Span,
    Style,
    Table,
    Words,
    note,
    words,
)
from compilescope.report.places import count, place
from compilescope.report.section import Reading, Section

_STYLES: dict[str, Style] = {"pass": "good", "fail": "bad", "unknown": "warn"}
_WORDS = {"pass": "agrees", "fail": "differs", "unknown": "inconclusive"}
_MANY = {"pass": "agree", "fail": "differ"}
_SUMMARY = ("max_abs", "max_rel", "max_ulp", "mismatch_percentage")
_PAIRS = (("absolute", "abs"), ("relative", "rel"), ("units in the last place", "ulp"))
"""Each has a largest and a mean."""
_NAMES = {
    "max_abs": "largest error",
    "max_rel": "relative",
    "max_ulp": "ULP",
    "rmse": "root mean square error",
    "cosine": "cosine similarity",
    "mismatch_percentage": "outside tolerance, %",
    "disagreeing": "finite on one side only",
}
_IN_PAIRS = frozenset(f"{which}_{name}" for which in ("max", "mean") for _, name in _PAIRS)
_SAID = frozenset(("mismatched", "differing", *_IN_PAIRS))
"""What is told elsewhere."""
_MOST_ITEMS = 40
"""Values that differ, failures first. Chosen: the rest is counted."""


def _build(reading: Reading) -> list[Block]:
    diffs = [body for _, body in reading.run.of(TensorDiff)]
    whole = [body for _, body in reading.run.of(DiffOutcome)]
    if not (diffs or whole) or (is_benchmark(reading.run) and not reading.full):
        return []  # A benchmark's summary has the verdict of each model.
    wrong = reading.digest.differences
    found: list[Block] = [_tally(diffs)] if diffs else []
    for body in whole:
        found += _outcome(body, reading)
    for number, finding in enumerate(wrong[:_MOST_ITEMS], 1):
        found.append(_item(str(number), finding, reading))
    if len(wrong) > _MOST_ITEMS:
        found.append(note(f"and {count(len(wrong) - _MOST_ITEMS, 'more value')} like these"))
    right = [body for body in diffs if body.verdict == "pass"]
    if right:
        found.append(
            Fold(
                words(count(len(right), "value that agrees", "values that agree")), (_table(right),)
            )
        )
    return found


def _outcome(body: DiffOutcome, reading: Reading) -> list[Block]:
    """What was found out of all values together."""
    blocks: list[Block] = []
    if body.verdict == "unknown":
        blocks.append(Paragraph(words(Span(f"Inconclusive: {body.reason}.", "warn"))))
    anchor = "Compared with a float64 run" if body.float64 else "Compared by tolerance"
    blocks.append(note(f"{anchor}; the backend compiled {count(body.compiles, 'time')}."))
    blocks += [note(text) for text in body.notes]
    if len(body.inputs) > 1:
        rows = tuple(
            (
                words(each.label),
                words(Span(_WORDS[each.verdict], _STYLES[each.verdict])),
                words(each.compiled),
            )
            for each in body.inputs
        )
        blocks.append(Table(("inputs", "", "compiled"), rows))
    for each in body.operations:
        blocks += _operation(each.words, each.file, each.line, reading)
        blocks += [Excerpt(each.source)] if each.source.strip() else []
    return blocks


def _operation(told: str, file: str, line: int, reading: Reading) -> list[Block]:
    at = place(file, line, reading.root) if file else ""
    where = f" ({at})" if at and at not in told else ""
    return [Paragraph(words(Span("wrong operation: ", "strong"), Span(told, "code"), where))]


def _tally(diffs: list[TensorDiff]) -> Paragraph:
    sides = list(dict.fromkeys((body.test or "the test", body.reference) for body in diffs))
    told = ", ".join(f"{test} vs. {reference}" for test, reference in sides[:4])
    numbers = {v: sum(body.verdict == v for body in diffs) for v in _WORDS}
    counts = [
        Span(count(numbers[v], _WORDS[v], _MANY.get(v, _WORDS[v])), _STYLES[v])
        for v in _WORDS
        if numbers[v]
    ]
    parts: list[str | Span] = [f"{count(len(diffs), 'value')}, {told}: "]
    for number, span in enumerate(counts):
        parts += [", ", span] if number else [span]
    return Paragraph(words(*parts))


def _item(number: str, finding: DifferenceFinding, reading: Reading) -> Item:
    body = finding.diff
    blocks: list[Block] = [Paragraph(words(body.reason))] if body.reason else []
    if body.input:
        blocks.append(note(body.input))
    if body.guilty and not reading.run.count(DiffOutcome):  # Else it is told once, above.
        blocks += _operation(body.guilty, finding.file, finding.line, reading)
    if _IN_PAIRS & body.metrics.keys():
        blocks.append(_errors(body))
    figures = _figures(body)
    if figures:
        blocks.append(Facts(figures))
    if body.worst:
        blocks.append(_worst(body))
    blocks += [_profile(profile) for profile in body.profiles if _says(profile, body)]
    if body.errors is not None and sum(map(len, body.errors.lines)) > 1:
        title, grid = "where the errors are", tuple(_map(body.errors))
        # A page has the room to show at once what a reader came for.
        blocks += [note(title), *grid] if reading.page else [Fold(words(title), grid)]
    shape = f"{body.dtype} {list(body.shape)}" if body.shape is not None else body.role
    kind = "" if body.role == "output" else f"{body.role}, "
    right = words(Span(f"{kind}{shape} ", "dim"), Span(_WORDS[body.verdict], _STYLES[body.verdict]))
    title = f"{body.model}: " if body.model else ""
    return Item(number, words(title, Span(body.path, "code")), right, tuple(blocks))


def _errors(body: TensorDiff) -> Table:
    rows = tuple(
        (words(title), *(words(_told(body, f"{which}_{name}")) for which in ("max", "mean")))
        for title, name in _PAIRS
        if f"max_{name}" in body.metrics
    )
    return Table(("error", "largest", "mean"), rows, (1, 2))


def _told(body: TensorDiff, name: str) -> str:
    return _number(body.metrics[name]) if name in body.metrics else "-"


def _figures(body: TensorDiff) -> tuple[tuple[str, Words], ...]:
    """Those with a name of their own, then any other that says something."""
    known = [name for name in _NAMES if name in body.metrics and name not in _SAID]
    known = [name for name in known if name != "disagreeing" or body.metrics[name]]
    others = [name for name in body.metrics if name not in _NAMES and name not in _SAID]
    others = [name for name in others if body.metrics[name]]
    return tuple(
        (_NAMES.get(name, name.replace("_", " ")), words(_number(body.metrics[name])))
        for name in (*known, *others)
    )


def _says(profile: ErrorProfile, body: TensorDiff) -> bool:
    """Do the errors keep to some places, or do they lie all over?"""
    if not profile.worst:
        return False
    _, many, _, outside = profile.worst[0]
    even = body.metrics.get("mismatched", 0) * many / profile.size
    return outside > 2 * even


def _worst(body: TensorDiff) -> Table:
    rows = tuple(
        (
            words(Span(str(list(element.index)), "code")),
            words(element.reference),
            words(element.test),
            words(element.error),
        )
        for element in body.worst
    )
    return Table(("worst at", "reference", "test", "error"), rows, (1, 2, 3))


def _profile(profile: ErrorProfile) -> Paragraph:
    """`along dimension 1 (64): at 20 (0.01, 256 outside), 21 ...`."""
    places = []
    for first, many, error, outside in profile.worst:
        at = str(first) if many == 1 else f"{first} to {first + many - 1}"
        places.append(f"{at} (up to {error:.3g}, {outside} out of tolerance)")
    spread = ""
    if profile.entries:
        spread = f"; {count(profile.entries, 'place')} above half the maximum"
    head = f"along dimension {profile.dimension} ({profile.size}): worst at "
    return Paragraph(words(Span(head, "dim"), ", ".join(places), Span(spread, "dim")))


def _map(grid: ErrorGrid) -> list[Block]:
    lines = f"{grid.row_size} x {grid.column_size} in {len(grid.lines)} lines"
    found: list[Block] = [
        note(f"The largest error in each cell; {lines}, last dimension from left to right."),
        Heatmap(grid.lines, f"{grid.low:.2g}", f"{grid.high:.2g}", "finite on one side only"),
    ]
    if grid.histogram:
        rows = [(words("none"), words(str(grid.zeros)))] if grid.zeros else []
        rows += [(words(f"1e{n} to 1e{n + 1}"), words(str(many))) for n, many in grid.histogram]
        found.append(Table(("error", "elements"), tuple(rows), (1,)))
    return found


def _table(diffs: list[TensorDiff]) -> Table:
    metrics = [name for name in _SUMMARY if any(name in body.metrics for body in diffs)]
    named = any(body.model for body in diffs)
    rows = tuple(
        (
            *([words(body.model)] if named else ()),
            words(Span(body.path, "code")),
            words(f"{body.dtype} {list(body.shape)}" if body.shape is not None else body.role),
            *(words(_told(body, name)) for name in metrics),
            words(Span(body.reason, "dim")),
        )
        for body in diffs
    )
    lead = ("model", "value", "shape") if named else ("value", "shape")
    columns = (*lead, *(_NAMES[name] for name in metrics), "why")
    return Table(columns, rows, tuple(range(len(lead), len(lead) + len(metrics))))


def _number(value: float) -> str:
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.4g}"


SECTION = Section("diffs", 120, _build, "Numbers", "test compared with reference")
