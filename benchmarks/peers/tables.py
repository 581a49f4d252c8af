"""The tables of the comparison, in markdown; one without rows is empty."""

from __future__ import annotations

import statistics

from peers.asking import Row
from peers.tool import Tool
from peers.truths import TRUTHS

JOBS = (
    "lines", "causes", "count", "guards", "eager", "advice", "clean", "unchanged",
    "differs", "operation", "wrong line", "part", "repro", "fixed",
)  # fmt: skip


def score_table(rows: list[Row], tools: list[Tool], question: str) -> str:
    """A job a row, a tool a column: how many of how many."""
    rows = [row for row in rows if row.question == question]
    names = [tool.name for tool in tools if any(row.tool == tool.name for row in rows)]
    jobs = [job for job in JOBS if any(job in row.scores for row in rows)]
    if not rows:
        return ""
    lines = [header("job", *names)]
    for job in jobs:
        lines.append(line(job, *(total(rows, name, job) for name in names)))
    if question == "watch":
        lines.append(
            line("files with Dynamo's Python that parse", *(sources(rows, n) for n in names))
        )
    else:
        lines.append(line("stopped at the limit", *(stopped(rows, name) for name in names)))
        lines.append(line("CPU time", *(seconds(rows, name) for name in names)))
    return "\n".join(lines)


def stopped(rows: list[Row], tool: str) -> str:
    return ", ".join(row.program for row in rows if row.tool == tool and row.stopped) or "–"


def seconds(rows: list[Row], tool: str) -> str:
    return " + ".join(f"{row.cpu_s:.0f} s" for row in rows if row.tool == tool)


def total(rows: list[Row], tool: str, job: str) -> str:
    # Stopped by us, on however busy a machine: no answer, and so no score.
    scores = [
        row.scores[job]
        for row in rows
        if row.tool == tool and job in row.scores and not row.stopped
    ]
    return f"{sum(s[0] for s in scores)}/{sum(s[1] for s in scores)}" if scores else "–"


def sources(rows: list[Row], tool: str) -> str:
    files = sum(row.sources for row in rows if row.tool == tool)
    return f"{sum(r.valid_sources for r in rows if r.tool == tool)}/{files}" if files else "–"


def program_table(rows: list[Row], tools: list[Tool], job: str) -> str:
    """Where the losses of each program were found."""
    rows = [row for row in rows if job in row.scores]
    names = [tool.name for tool in tools if any(row.tool == tool.name for row in rows)]
    if not rows:
        return ""
    lines = [header(f"program: {job}", *names)]
    for program in dict.fromkeys(row.program for row in rows):
        of = [row for row in rows if row.program == program]
        lines.append(line(program, *(total(of, name, job) for name in names)))
    return "\n".join(lines)


def repro_table(rows: list[Row]) -> str:
    rows = [row for row in rows if row.question == "shrink"]
    if not rows:
        return ""
    smallest = {program.name: program.smallest for program in TRUTHS}
    lines = [header("program", "smallest possible", "tool", "fails alone", "operations", "CPU, s")]
    for row in sorted(rows, key=lambda row: row.program):
        failed = "yes" if row.scores["repro"][0] else "no"
        size = "–" if row.operations is None else str(row.operations)
        cells = (str(smallest[row.program]), row.tool, failed, size, f"{row.cpu_s:.0f}")
        lines.append(line(row.program, *cells))
    return "\n".join(lines)


def fix_table(rows: list[Row]) -> str:
    rows = [row for row in rows if row.question == "fix"]
    if not rows:
        return ""
    lines = [header("program", "tool", "nothing is lost any more, same result", "CPU, s")]
    for row in rows:
        yes = "yes" if row.scores["fixed"][0] else "no"
        lines.append(line(row.program, row.tool, yes, f"{row.cpu_s:.0f}"))
    return "\n".join(lines)


def cost_table(rows: list[Row]) -> str:
    """CPU time against the plain runs, and how much there is to read, over the same programs."""
    rows = [row for row in rows if row.question == "watch"]
    plain = {row.program: row.cpu_s for row in rows if row.tool == "python"}
    if not plain:
        return ""
    lines = [header("tool", "CPU time, of the plain runs", "lines to read, median program", "most")]
    for name in dict.fromkeys(row.tool for row in rows):
        of = [row for row in rows if row.tool == name]
        ratio = sum(row.cpu_s for row in of) / sum(plain[row.program] for row in of)
        read = [row.lines for row in of]
        cells = (f"{ratio:.2f}x", f"{statistics.median(read):.0f}", str(max(read)))
        lines.append(line(name, *cells))
    return "\n".join(lines)


def absent_table(tools: list[Tool]) -> str:
    lines = [header("not run here", "why")]
    for tool in tools:
        if tool.not_run:
            lines.append(line(tool.name, tool.not_run))
        elif missing := tool.missing():
            lines.append(line(tool.name, f"not installed: pip install {missing}"))
    return "\n".join(lines) if len(lines) > 1 else ""


def header(*cells: str) -> str:
    return line(*cells) + "\n" + line(*("---" for _ in cells))


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
