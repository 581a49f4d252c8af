"""What other commands do with a sweep's run: open the run of one job, show it, compare two."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.model.run import Run
    from compilescope.report.blocks import Document
    from compilescope.report.section import Reading

F = TypeVar("F", bound=Callable[..., Any])
_OPENED = "opened"


def job_option(function: F) -> F:
    return click.option("--job", metavar="NAME", help="Of a sweep: open the run of this job.")(
        function
    )


def found_run(home: Path, run: str | None, job: str | None) -> Path:
    """The folder of a run; with `job`, of that job's run, unpacked beside the sweep's."""
    from compilescope.model.home import find_run

    folder = find_run(home, run)
    return _opened(folder, job) if job else folder


def _opened(sweep: Path, job: str) -> Path:
    from compilescope.model.run import read_run
    from compilescope.rules.sweeps import is_sweep, sweep_of
    from compilescope.scale.store import Store, key_of
    from compilescope.sweep.advising import unpacked_run
    from compilescope.sweep.recording import store_url

    run = read_run(sweep)
    if not is_sweep(run):
        raise ToolError(f"{run.header.run} is not a sweep: leave out --job.")
    names = {each.name: each for each in sweep_of(run).jobs}
    if job not in names:
        near = difflib.get_close_matches(job, names, 3)
        hint = f"Did you mean {', '.join(near)}?" if near else "`--json` lists the jobs."
        raise ToolError(f"The sweep {run.header.run} has no job {job}.", hint)
    target = sweep / _OPENED / key_of(job)
    if target.is_dir():
        return target
    url = store_url(sweep)
    if not url:
        raise ToolError(
            f"The run of {job} can't be opened: the sweep's store is not on this machine.",
            hint="An exported sweep does not contain the runs of its jobs.",
        )
    if not names[job].run:
        raise ToolError(f"The sweep has no run of {job}, which ended as {names[job].state}.")
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unpacked_run(Store(url), job, part)
        part.rename(target)
    except OSError as error:
        raise ToolError(f"Cannot unpack the run of {job}: {error.strerror}.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def shown_value(reading: Reading) -> Any:
    """What `show --json` prints: of a sweep what `sweep --json` does."""
    from compilescope.cli.benchmark_values import digest_value
    from compilescope.cli.sweep_value import sweep_value
    from compilescope.rules.sweeps import is_sweep, sweep_of

    if is_sweep(reading.run):
        return sweep_value(sweep_of(reading.run))
    return digest_value(reading.digest)


def compared_sweeps(before: Run, after: Run) -> tuple[Any, Document] | None:
    """JSON and document of two sweeps; None where neither run is one."""
    from compilescope.cli.sweep_value import changes_value
    from compilescope.report.sweep_changes import changes_document
    from compilescope.rules.sweeps import is_sweep, regressions, sweep_of

    kinds = [is_sweep(run) for run in (before, after)]
    if not any(kinds):
        return None
    if not all(kinds):
        other = (before if kinds[1] else after).header.run
        raise ToolError(f"{other} is not a sweep, so it can't be compared with one.")
    changes = regressions(sweep_of(before), sweep_of(after))
    return changes_value(changes), changes_document(changes, after.header.root)
