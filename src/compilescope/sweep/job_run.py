"""The run of one job of a sweep, unpacked beside the sweep's own."""

from __future__ import annotations

import difflib
import os
import shutil
from pathlib import Path

from compilescope.analysis.sweeps import is_sweep, sweep_of
from compilescope.errors import ToolError
from compilescope.model.jobs import JobEnded
from compilescope.model.run import Run, read_run
from compilescope.scale.store import Store, key_of
from compilescope.sweep.advice import unpacked_run
from compilescope.sweep.record import store_url

_OPENED = "opened"


def find_job(run: Run, job: str) -> JobEnded:
    """How a job of the sweep ended."""
    if not is_sweep(run):
        raise ToolError(f"{run.header.run} is not a sweep: leave out --job.")
    names = {each.name: each for each in sweep_of(run).jobs}
    if job not in names:
        near = difflib.get_close_matches(job, names, 3)
        hint = f"Did you mean {', '.join(near)}?" if near else "`--json` lists the jobs."
        raise ToolError(f"The sweep {run.header.run} has no job {job}.", hint)
    return names[job]


def opened_job(sweep: Path, job: str) -> Path:
    """The folder of a job's run."""
    ended = find_job(read_run(sweep), job)
    target = sweep / _OPENED / key_of(job)
    if target.is_dir():
        return target
    url = store_url(sweep)
    if not url:
        raise ToolError(
            f"The run of {job} can't be opened: the sweep's store is not on this machine.",
            hint="An exported sweep does not contain the runs of its jobs.",
        )
    if not ended.run:
        raise ToolError(f"The sweep has no run of {job}, which ended as {ended.state}.")
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unpacked_run(Store(url), job, part)
        part.rename(target)
    except OSError as error:
        # Somebody else may have unpacked it meanwhile.
        if target.is_dir():
            return target
        raise ToolError(f"Cannot unpack the run of {job}: {error.strerror}.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target
