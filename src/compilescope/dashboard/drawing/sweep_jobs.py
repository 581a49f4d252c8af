"""What worker processes draw of the jobs of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from compilescope.analysis.sweeps import is_sweep, sweep_of
from compilescope.dashboard.addresses import Missing, RegistryPages, jobs_address
from compilescope.errors import ToolError
from compilescope.model.jobs import JobEnded
from compilescope.model.run import Run, read_run
from compilescope.report.blocks import Document, Part
from compilescope.report.document import report_document
from compilescope.report.job_list import hit_blocks, job_document, jobs_blocks
from compilescope.report.places import anchor_of
from compilescope.report.render.page import PageParts, page_parts
from compilescope.report.section import Reading
from compilescope.sweep.job_run import find_job, opened_job


class JobPage(NamedTuple):
    """A job's report, or what the sweep knows of it."""

    parts: PageParts
    anchors: dict[str, str]
    """Of causes, by rule and by fingerprint."""
    folder: str
    """Of its own run; empty where that is not there."""


def draw_jobs(sweep: Path, cause: str) -> PageParts:
    """All jobs; or those that a rule fired in, with its places."""
    run = _sweep(sweep)
    seen, jobs_at = sweep_of(run), jobs_address(sweep.name)
    if not cause:
        title, blocks = "Jobs", jobs_blocks(seen.jobs, jobs_at)
    else:
        found = next((each for each in seen.causes if each.rule == cause), None)
        if found is None:
            raise Missing(f"No job of {run.header.run} has the cause {cause!r}.")
        title, blocks = found.rule, hit_blocks(found, seen.jobs, run.header.root, jobs_at)
    return page_parts([Document(title, "", (Part("jobs", "", tuple(blocks)),))], headed=False)


def draw_job(sweep: Path, name: str) -> JobPage:
    run = _sweep(sweep)
    job = _job(run, name)
    try:
        folder = opened_job(sweep, name)
        reading = Reading(read_run(folder), full=True, page=True, pages=RegistryPages())
    except ToolError as error:
        document = job_document(job, run.header.root, f"{error.message} {error.hint}".strip())
        return JobPage(page_parts([document]), _told_anchors(job), "")
    anchors: dict[str, str] = {}
    for finding in reading.causes:
        for key in (finding.rule, finding.fingerprint):
            anchors.setdefault(key, anchor_of(finding))
    return JobPage(page_parts([report_document(reading)]), anchors, str(folder))


def _told_anchors(job: JobEnded) -> dict[str, str]:
    anchors: dict[str, str] = {}
    for cause in job.causes:
        for key in (cause.rule, cause.fingerprint):
            anchors.setdefault(key, cause.fingerprint)
    return anchors


def _sweep(folder: Path) -> Run:
    run = read_run(folder)
    if not is_sweep(run):
        raise Missing(f"{run.header.run} is not a sweep: it has no jobs.")
    return run


def _job(run: Run, name: str) -> JobEnded:
    try:
        return find_job(run, name)
    except ToolError as error:
        raise Missing(error.message, "The sweep's page lists its jobs.") from None
