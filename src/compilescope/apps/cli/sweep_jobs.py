"""How other commands treat the run of a sweep: open the run of one of its jobs, or show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from compilescope.report.section import Reading

F = TypeVar("F", bound=Callable[..., Any])


def job_option(function: F) -> F:
    return click.option("--job", metavar="NAME", help="Of a sweep: open the run of this job.")(
        function
    )


def found_run(home: Path, run: str | None, job: str | None) -> Path:
    """The folder of a run; with `job`, of that job's run, unpacked beside the sweep's."""
    from compilescope.record.home import find_run

    folder = find_run(home, run)
    if not job:
        return folder
    from compilescope.scale.sweep.record import opened_job

    return opened_job(folder, job)


def shown_value(reading: Reading) -> Any:
    """What `show --json` prints, for `put_json`: of a sweep what `sweep --json` does."""
    from compilescope.apps.cli.run_json import sweep_value
    from compilescope.knowledge.analysis.json_form import digest_entries
    from compilescope.knowledge.analysis.sweeps import is_sweep, sweep_of

    if is_sweep(reading.run):
        return sweep_value(sweep_of(reading.run))
    return digest_entries(reading.digest)
