"""Jobs in words: the state, the outcome and the output that their pages show."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from compilescope.apps.dashboard.jobs.job import (
    CommandJob,
    output_end,
    plain_text,
    read_output,
    settled,
    whole_characters,
)
from compilescope.record.header import FILE_NAME
from compilescope.report.blocks import Span, Style, Table, Words, words

_MOMENT_S = 3.0
"""Between Stop and the offer to kill. Chosen: longer than a double click."""
_SHOWN = 1 << 16
"""Bytes of output that a page begins with. Chosen: several screens."""


def job_label(job: CommandJob) -> tuple[str, str]:
    """Its state in a word or two, and the class of the badge."""
    if job.state == "waiting":
        return "Waiting", ""
    if job.state == "running":
        return ("Stopping", "warn") if job.stopping else ("Running", "live")
    if job.state == "lost":
        return "Lost", "bad"
    status = job.exit_status
    # Its run may be stopped instead of the job: nobody else sends it Ctrl-C.
    if job.state == "stopped" or status == -signal.SIGINT:
        return "Stopped", "warn"
    if status == 0:
        return "Finished", "good"
    return (f"Exit status {status}" if status is not None and status > 0 else "Failed"), "bad"


def job_state(job: CommandJob, home: Path, exits: Mapping[int, str]) -> dict[str, Any]:
    """What moves on the page of a job, as its script gets it too."""
    label, style = job_label(job)
    return {
        "state": job.state,
        "label": label,
        "style": style,
        "seconds": job.seconds,
        "outcome": _outcome(job, exits),
        "stopping": job.stopping is not None,
        "can_stop": not job.is_over and job.stopping is None,
        "can_kill": _can_kill(job),
        "runs": present_runs(job, home),
        "dropped": job.end.dropped_bytes if job.end is not None else 0,
    }


def _can_kill(job: CommandJob) -> bool:
    """A second click on Stop must not kill: what is asked to stop gets a moment."""
    if job.is_over or job.stopping is None:
        return job.orphan is not None
    return time.time() > job.stopping.at + _MOMENT_S


def _outcome(job: CommandJob, exits: Mapping[int, str]) -> str:
    if job.state == "waiting":
        return "It starts when a running job ends."
    meaning = exits.get(job.exit_status, "") if job.exit_status is not None else ""
    # What status 0 means says enough.
    if meaning and job.exit_status == 0 and job.state == "ended":
        return meaning
    return " ".join(filter(None, (meaning, job.outcome)))


def present_runs(job: CommandJob, home: Path) -> list[str]:
    """Of those that it made."""
    return [run for run in job.runs if (home / run / FILE_NAME).is_file()]


@dataclass(frozen=True)
class ShownOutput:
    """The end of what was printed."""

    text: str
    end: int
    """Where a stream goes on from."""
    before: int
    """Bytes that come before it."""


def shown_output(folder: Path) -> ShownOutput:
    start = max(0, output_end(folder) - _SHOWN)
    text, at = b"", start
    while chunk := read_output(folder, at, _SHOWN).data:
        text, at = text + chunk, at + len(chunk)
        if len(text) > 2 * _SHOWN:
            break
    usable = whole_characters(text)
    return ShownOutput(settled(plain_text(text[:usable])), start + usable, start)


def jobs_table(jobs: Sequence[CommandJob], home: Path) -> Table:
    rows = tuple(_row(job, home) for job in jobs)
    columns = ("Job", "State", "Started", "Took", "Runs")
    return Table(columns, rows, numeric=(3,))


def _row(job: CommandJob, home: Path) -> tuple[Words, ...]:
    label, badge = job_label(job)
    styles: dict[str, Style] = {"good": "good", "warn": "warn", "bad": "bad"}
    runs = present_runs(job, home)
    links = [Span(run, url=f"/runs/{quote(run)}") for run in runs[:3]]
    parts: list[str | Span] = [part for link in links for part in (link, " ")]
    if len(runs) > len(links):
        parts.append(f"and {len(runs) - len(links)} more")
    return (
        words(Span(job.request.title or job.line, url=f"/jobs/{job.id}")),
        words(Span(label, styles.get(badge, "plain"))),
        words(when(job.started or job.request.created)),
        words(duration(job.seconds)),
        words(*parts),
    )


def when(seconds: float) -> str:
    """The local time; the day where it is not today."""
    then, now = time.localtime(seconds), time.localtime()
    form = "%H:%M:%S" if then[:3] == now[:3] else "%Y-%m-%d %H:%M"
    return time.strftime(form, then)


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
