"""Where numbers part ways."""

from __future__ import annotations

from compilescope.model.bodies import TensorDiff
from compilescope.report.blocks import Block, Span, Style, Table, Words, words
from compilescope.report.section import Reading, Section

_STYLES: dict[str, Style] = {"pass": "good", "fail": "bad", "unknown": "warn"}


def _build(reading: Reading) -> list[Block]:
    diffs = [body for _, body in reading.run.of(TensorDiff)]
    if not diffs:
        return []
    metrics = list(dict.fromkeys(name for diff in diffs for name in diff.metrics))
    rows = tuple(_row(diff, metrics) for diff in diffs)
    columns = ("model", "value", "reference", "test", "verdict", *metrics, "why")
    return [Table(columns, rows, tuple(range(5, 5 + len(metrics))))]


def _row(diff: TensorDiff, metrics: list[str]) -> tuple[Words, ...]:
    figures = [
        words(f"{diff.metrics[name]:.4g}" if name in diff.metrics else "-") for name in metrics
    ]
    why = "; ".join(text for text in (diff.reason, diff.guilty) if text)
    return (
        words(diff.model or "-"),
        words(Span(diff.path, "code")),
        words(diff.reference),
        words(diff.test or "-"),
        words(Span(diff.verdict, _STYLES[diff.verdict])),
        *figures,
        words(why),
    )


SECTION = Section("diffs", 120, _build, "Numbers", "the reference held against the test")
