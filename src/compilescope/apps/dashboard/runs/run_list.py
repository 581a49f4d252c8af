"""What the page of runs shows: which of them, in which order, and how each program fares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

import msgspec

from compilescope.apps.dashboard.addresses import run_address
from compilescope.apps.dashboard.runs.rows import RunRow
from compilescope.base.errors import ToolError
from compilescope.record.byte_counts import shown_bytes
from compilescope.report.blocks import Trend, TrendPoint
from compilescope.report.places import count
from compilescope.report.render.spans import ago as ago
from compilescope.report.render.spans import duration

# Chosen: what people look through, and bounds for what anyone may send; what the page costs with
# 5,000 runs is measured by benchmarks/dashboard_runs.py.
PAGE_ROWS = 100
_LONGEST_SEARCH = 200
_MOST_CHOICES = 200
_MOST_POINTS = 40
_CARDS = 6
Measure = Literal["breaks", "recompiles", "compile", "step", "memory", "time"]
MEASURES: tuple[tuple[Measure, str], ...] = (
    ("breaks", "Graph breaks"),
    ("recompiles", "Recompiles"),
    ("compile", "Compile time"),
    ("step", "Step time"),
    ("memory", "Memory"),
    ("time", "Run time"),
)

COLUMNS = (
    ("run", "Run"),
    ("program", "Program"),
    ("started", "When"),
    ("torch", "torch"),
    ("status", "Status"),
    ("breaks", "Breaks"),
    ("recompiles", "Recompiles"),
    ("compile", "Compile time"),
    ("step", "Step"),
    ("memory", "Memory"),
    ("tags", "Tags"),
    ("note", "Note"),
)
"""Names in addresses, and titles."""
NUMERIC = ("breaks", "recompiles", "compile", "step", "memory")
_DESCENDING = ("started", *NUMERIC)
"""What one wants to see the most of first."""

_VALUES: dict[str, Callable[[RunRow], Any]] = {
    "run": lambda row: row.run,
    "program": lambda row: row.program.casefold(),
    "started": lambda row: row.started,
    "torch": lambda row: _version(row.torch),
    "status": lambda row: row.status,
    "breaks": lambda row: row.breaks,
    "recompiles": lambda row: row.recompiles,
    "compile": lambda row: row.compile_seconds,
    "step": lambda row: row.step_seconds,
    "memory": lambda row: row.peak_bytes,
    "tags": lambda row: [tag.casefold() for tag in row.tags] or None,
    "note": lambda row: row.note.casefold() or None,
}


class RunQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for: all of it stands in the page's address."""

    q: str = ""
    """Words that all must occur."""
    kind: str = ""
    status: str = ""
    tag: str = ""
    program: str = ""
    sort: str = ""
    """A column; `-` before it: the largest first. Empty: the newest, after those that run."""
    page: int = 1
    measure: Measure = "breaks"
    """Of the lines by program."""
    edit: str = ""
    """The run whose tags and note are being edited."""

    def address(self, path: str = "/", **changes: Any) -> str:
        """Of the same with some changes; what asks for nothing is left out."""
        asked = msgspec.to_builtins(msgspec.structs.replace(self, **changes))
        return f"{path}?{urlencode(asked)}" if asked else path

    @property
    def is_filtered(self) -> bool:
        return bool(self.q or self.kind or self.status or self.tag or self.program)

    @property
    def sorted_by(self) -> tuple[str, bool]:
        """Column, and whether the largest comes first."""
        return (self.sort.lstrip("-") or "started", self.sort.startswith("-") or not self.sort)

    def sorting(self, column: str) -> str:
        """The address that a column's title leads to: once more, the other way around."""
        at, descending = self.sorted_by
        wanted = not descending if at == column else column in _DESCENDING
        sort = f"-{column}" if wanted else column
        return self.address(sort="" if sort == "-started" else sort, page=1, edit="")


def parse_query(given: Iterable[tuple[str, str]]) -> RunQuery:
    values: dict[str, str] = {}
    for name, value in given:
        if name not in RunQuery.__struct_fields__:
            raise ToolError(f"The list of runs has no filter {name[:40]!r}.")
        values[name] = value.strip()
    try:
        query = msgspec.convert({k: v for k, v in values.items() if v}, RunQuery, strict=False)
    except msgspec.ValidationError:
        raise ToolError("The address of this list is not valid: a value is not a number.") from None
    if query.sort.removeprefix("-") not in ("", *_VALUES):
        raise ToolError(f"Runs can't be sorted by {query.sort[:40]!r}.")
    if any(len(value) > _LONGEST_SEARCH for value in values.values()):
        raise ToolError(f"A search can have at most {_LONGEST_SEARCH} characters.")
    if not 1 <= query.page <= 1_000_000:
        raise ToolError(f"There is no page {query.page}.")
    return query


class FilterChoice(NamedTuple):
    """A value to filter by."""

    value: str
    runs: int


class FoundRuns(NamedTuple):
    """A page of runs."""

    rows: list[RunRow]
    total: int
    """Of all runs."""
    matching: int
    page: int
    pages: int

    @property
    def words(self) -> str:
        if not self.matching:
            return "No runs"
        first = (self.page - 1) * PAGE_ROWS + 1
        last = first + len(self.rows) - 1
        of_all = f"{self.matching:,} {'run' if self.matching == 1 else 'runs'}"
        shown = f"{first:,}–{last:,} of {of_all}" if self.pages > 1 else of_all
        less = self.matching < self.total
        return f"{shown} (of {self.total:,})" if less else shown


def find(rows: Sequence[RunRow], query: RunQuery, text_of: Callable[[str], str]) -> FoundRuns:
    """`rows` come newest first; `text_of` a run is what a search looks at."""
    kept = _sorted(_filtered(rows, query, text_of), query)
    pages = max(1, -(-len(kept) // PAGE_ROWS))
    page = min(query.page, pages)
    shown = kept[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return FoundRuns(shown, len(rows), len(kept), page, pages)


def _filtered(
    rows: Sequence[RunRow], query: RunQuery, text_of: Callable[[str], str]
) -> list[RunRow]:
    kept = list(rows)
    if query.kind:
        kept = [row for row in kept if row.kind == query.kind]
    if query.status:
        kept = [row for row in kept if row.status == query.status]
    if query.tag:
        kept = [row for row in kept if query.tag in row.tags]
    if query.program:
        kept = [row for row in kept if row.program == query.program]
    for word in query.q.casefold().split():
        kept = [row for row in kept if word in text_of(row.run)]
    return kept


def _sorted(rows: list[RunRow], query: RunQuery) -> list[RunRow]:
    """What is not known comes last, whichever way; equal ones stay newest first."""
    if not query.sort:
        return [row for row in rows if row.live] + [row for row in rows if not row.live]
    column, descending = query.sorted_by
    value_of = _VALUES[column]
    valued = [(value_of(row), row) for row in rows]
    known = [pair for pair in valued if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=descending)
    return [row for _, row in known] + [row for value, row in valued if value is None]


def choices(rows: Sequence[RunRow], name: str) -> list[FilterChoice]:
    """The values to filter by, those of most runs first."""
    if name == "tag":
        counted = Counter(tag for row in rows for tag in row.tags)
    else:
        counted = Counter(getattr(row, name) for row in rows)
    return [FilterChoice(value, runs) for value, runs in counted.most_common(_MOST_CHOICES)]


class ProgramHistory(NamedTuple):
    """A program, and how it went over its runs."""

    name: str
    runs: int
    link: str
    last: str
    trend: Trend


def programs(rows: Sequence[RunRow], query: RunQuery, now: float) -> list[ProgramHistory]:
    """Those that ran last, each with its runs from the oldest to the newest."""
    grouped: dict[str, list[RunRow]] = {}
    for row in rows:
        grouped.setdefault(row.program, []).append(row)
    if query.program:
        chosen = {query.program: grouped.get(query.program, [])}
    else:
        often = [(name, members) for name, members in grouped.items() if len(members) > 1]
        chosen = dict(often[:_CARDS])
    return [_program(name, members, query, now) for name, members in chosen.items() if members]


def _program(name: str, members: list[RunRow], query: RunQuery, now: float) -> ProgramHistory:
    points = tuple(
        TrendPoint(
            ago(now - row.started) if row.started else row.run,
            value,
            text,
            url=run_address(row.run),
        )
        for row in reversed(members[:_MOST_POINTS])
        # Of a run that still happens the figure is not its last.
        if not row.live
        and (value := measured(row, query.measure)) is not None
        and (text := shown_measure(value, query.measure, on_device=row.on_device))
    )
    return ProgramHistory(
        name,
        len(members),
        query.address(program=name, page=1, edit=""),
        points[-1].text if points else "…" if any(row.pending for row in members) else "–",
        Trend("", points, compact=not query.program),
    )


def measured(row: RunRow, measure: Measure) -> float | None:
    known = {
        "breaks": row.breaks,
        "recompiles": row.recompiles,
        "compile": row.compile_seconds,
        "step": row.step_seconds,
        "memory": row.peak_bytes,
        # How long a program ran that did not end by itself says nothing.
        "time": row.seconds if row.status == "ok" else None,
    }
    return known[measure]


def shown_measure(value: float, measure: Measure, *, on_device: bool = False) -> str:
    if measure in ("breaks", "recompiles"):
        return count(int(value), measure.removesuffix("s"))
    if measure == "memory":
        return f"{shown_bytes(int(value))}{' on the GPU' if on_device else ''}"
    return shown_seconds(value)


def shown_seconds(seconds: float | None) -> str:
    if seconds is None:
        return "…"
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return duration(seconds * 1e9) if seconds else "0 s"


def shown_step(row: RunRow) -> str:
    return "–" if row.step_seconds is None else shown_seconds(row.step_seconds)


def shown_memory(row: RunRow) -> str:
    return "–" if row.peak_bytes is None else shown_bytes(row.peak_bytes)


def arguments(row: RunRow) -> str:
    """What follows the program in its command; where runs are stored says nothing of it."""
    words = list(row.command[1:])
    if "--dir" in words and row.kind != "run":
        at = words.index("--dir")
        del words[at : at + 2]
    return " ".join(words)


def exact(started: float) -> str:
    """`2026-11-16 07:31:02`, in the time of this machine."""
    try:
        return datetime.fromtimestamp(started).isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):
        return ""  # A header may hold any number.


def status_class(row: RunRow) -> str:
    if row.live:
        return "live"
    if row.status == "ok":
        return "good"
    return "" if row.status in ("open", "ended") else "warn" if row.status == "cut short" else "bad"


def as_data(row: RunRow) -> dict[str, Any]:
    """A run in `/runs.json`."""
    data = msgspec.structs.asdict(row)
    del data["home"]
    return data


def marks(row: RunRow) -> str:
    """What a page compares, to know whether a row is still as it was drawn."""
    changing = (
        *(row.status, row.breaks, row.recompiles, row.compile_seconds),
        *(row.step_seconds, row.peak_bytes, row.note),
    )
    return msgspec.json.encode([*changing, *row.tags]).decode()


def _version(torch: str | None) -> list[tuple[int, str]] | None:
    """`2.9.1` before `2.10`."""
    if not torch:
        return None
    parts = torch.replace("+", ".").split(".")
    return [(int(part) if part.isdecimal() else -1, part) for part in parts]
