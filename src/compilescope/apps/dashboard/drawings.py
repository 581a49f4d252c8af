"""What worker processes draw: pages of one run, two runs, many runs, devices, and jobs of a sweep.

Functions of plain arguments to parts of a page, which `drawing_workers` calls in other processes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from compilescope.apps.dashboard.addresses import (
    MissingPage,
    RegistryPages,
    compare_address,
    device_address,
    jobs_address,
    run_address,
)
from compilescope.apps.dashboard.runs.rows import RunRow
from compilescope.backends.device_files import shipped_devices
from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.benchmark_changes import benchmark_history
from compilescope.knowledge.analysis.sweeps import is_sweep, sweep_of
from compilescope.knowledge.registry.pages import find_pages
from compilescope.record.jobs import JobEnded
from compilescope.record.run import Run, read_run
from compilescope.report.benchmark_changes import by_setup, history_item
from compilescope.report.blocks import Block, Document, Part, note
from compilescope.report.comparison import compare_runs, read_side, split_rank
from compilescope.report.device import (
    CheckedRun,
    checked,
    checked_runs,
    checks_table,
    device_blocks,
    devices_table,
    examples_table,
    model_items,
    refused,
)
from compilescope.report.document import report_document
from compilescope.report.job_list import hit_blocks, job_document, jobs_blocks, sweeps_table
from compilescope.report.number_runs import number_items
from compilescope.report.overlay import overlay_document
from compilescope.report.places import anchor_of
from compilescope.report.render.html import draw
from compilescope.report.render.page import PageParts, page_parts, to_page
from compilescope.report.render.spans import moment
from compilescope.report.render.structured import to_json
from compilescope.report.section import Reading
from compilescope.scale.sweep.record import find_job, opened_job


def draw_run(folder: Path) -> PageParts:
    """The report, inside the dashboard's frame."""
    run = read_run(folder)
    jobs_at = jobs_address(folder.name)
    reading = Reading(run, full=True, page=True, pages=RegistryPages(), jobs_at=jobs_at)
    return page_parts([report_document(reading)])


def report_file(folder: Path, form: str) -> bytes:
    """What `compilescope report` writes: `html` or `json`. Its links lead out of the dashboard."""
    page = form == "html"
    reading = Reading(read_run(folder), full=True, page=page, pages=find_pages())
    documents = [report_document(reading)]
    text = to_page(documents) if page else to_json(documents, [reading.digest])
    return text.encode()


# Chosen: programs that ran twice, the newest first, and letters of a run's name that anyone may
# send.
_MOST_PAIRS = 12
_LONGEST_NAME = 300


class ChosenRun(NamedTuple):
    """A run that was asked for, or one rank of it."""

    row: RunRow
    rank: int | None

    @property
    def name(self) -> str:
        return self.row.run if self.rank is None else f"{self.row.run}@{self.rank}"


class RunPair(NamedTuple):
    """The two newest runs of a program."""

    program: str
    newest: str
    """When it was."""
    before: str
    after: str

    @property
    def address(self) -> str:
        return compare_address(self.before, self.after)


def draw_comparison(
    before: Path, before_rank: int | None, after: Path, after_rank: int | None
) -> PageParts:
    sides = read_side(before, before_rank), read_side(after, after_rank)
    return page_parts([compare_runs(*sides).document], headed=False)


def draw_overlay(sides: tuple[tuple[Path, int | None], ...]) -> PageParts:
    runs = [read_side(folder, rank) for folder, rank in sides]
    return page_parts([overlay_document(runs, run_address)], headed=False)


def find_chosen(
    rows: Sequence[RunRow], name: str, named_by_start: Callable[[str], str | None]
) -> ChosenRun:
    """By its id or the start of it, as on the command line; `RUN@1` is a rank.

    `named_by_start` reads the ids inside the folders, which may have other names.
    """
    if len(name) > _LONGEST_NAME:
        raise ToolError("The id of a run is shorter than this.")
    exact = [row for row in rows if row.run == name]
    if exact:
        return ChosenRun(exact[0], None)
    run, rank = split_rank(name)
    found = [row for row in rows if row.run == run] or [r for r in rows if r.run.startswith(run)]
    if not found and (folder := named_by_start(run)) is not None:
        found = [row for row in rows if row.run == folder]
    if len(found) == 1:
        return ChosenRun(found[0], rank)
    if not found or not run:
        raise MissingPage(f"There is no run {name!r}.", hint="Choose one of the list.")
    names = ", ".join(row.run for row in found[:5])
    raise ToolError(f"{name!r} matches {len(found)} runs: {names}.")


def newest_pairs(rows: Sequence[RunRow]) -> list[RunPair]:
    """Of each program that ran twice; rows come with the newest first."""
    found: dict[tuple[str, str], list[RunRow]] = {}
    for row in rows:
        found.setdefault((row.kind, row.program), []).append(row)
    return [
        RunPair(of[0].program, moment(of[0].started), of[1].run, of[0].run)
        for of in found.values()
        if len(of) > 1
    ][:_MOST_PAIRS]


Named = tuple[tuple[str, Path], ...]
"""Names of programs, and folders of their runs."""
_NOTHING = "No violations found. Run or check a program to see what this device would not support."


def draw_devices(runs: Named) -> PageParts:
    """Those that `runs` were checked against; then the others, without figures: a page of its own
    checks programs against one of them."""
    devices = shipped_devices()
    checks = checked_runs(_named_runs(runs))
    chosen = {each.check.device for each in checks}
    table: Block = note("No program has been checked against a device.")
    if checks:
        titles = {device.name: device.title for device in devices}
        table = devices_table(checks, titles, device_address)
    others = examples_table([each for each in devices if each.name not in chosen], device_address)
    return _devices_page(
        [
            Part("devices", "Yours", (table,), "what your runs were checked against"),
            Part("examples", "Examples", (others,), "the page of each checks your programs"),
        ]
    )


def draw_device(runs: Named, programs: Named, name: str) -> PageParts:
    """How runs fared, violations by model, then what the device supports."""
    device = next((each for each in shipped_devices() if each.name == name), None)
    found = refused(_named_runs(runs), name)
    checks = checked_runs(_named_runs(runs), name)
    if device is None and not checks:
        known = ", ".join(each.name for each in shipped_devices())
        raise MissingPage(f"There is no device {name!r}.", hint=f"Known devices: {known}.")
    if device is not None:
        found += checked(_named_runs(programs), [device])
    items: list[Block] = model_items(found, run_address)
    parts = []
    if checks:
        parts.append(
            Part("checks", "Checked", (checks_table(checks, run_address),), "newest first")
        )
    nothing: list[Block] = [note(_nothing_recorded(checks))]
    parts.append(Part("violations", "Violations", tuple(items or nothing), "by model"))
    if device is not None:
        declared = tuple(device_blocks(device))
        parts.append(Part("supports", "What it supports", declared, "as its file declares"))
    return _devices_page(parts)


def _nothing_recorded(checks: Sequence[CheckedRun]) -> str:
    refusing = [each for each in checks if each.check.outcome != "pass"]
    if not refusing:
        return _NOTHING if not checks else "No violations found."
    last = refusing[0]
    words = ["compilescope", "preflight", "--device", last.check.device, "--run", last.run]
    return f"They were counted only. This lists them: {shlex.join(words)}"


def _named_runs(runs: Named) -> Iterator[tuple[str, Run]]:
    """Those that can be read: one that is deleted or damaged is no reason to hide the others."""
    for program, folder in runs:
        try:
            yield program, read_run(folder)
        except (ToolError, OSError):
            continue


def _devices_page(parts: Sequence[Part]) -> PageParts:
    return page_parts([Document("Devices", "", tuple(parts))], headed=False)


class HistoryEntry(NamedTuple):
    """One model, on all its backends or on one of them."""

    model: str
    backend: str
    """Empty: all."""
    drawn: Markup


class DrawnHistory(NamedTuple):
    """Drawn for each choice that a reader has: intervals take their time, and need it once."""

    models: tuple[str, ...]
    backends: tuple[str, ...]
    entries: tuple[HistoryEntry, ...]

    def chosen(self, model: str, backend: str) -> list[Markup]:
        return [
            each.drawn
            for each in self.entries
            if each.backend == backend and model in ("", each.model)
        ]


def draw_benchmarks(folders: tuple[Path, ...]) -> DrawnHistory:
    series = benchmark_history(list(_runs(folders)))
    backends = tuple(sorted({each.backend for each in series}))
    entries = [
        HistoryEntry(setup.model, backend, draw([history_item(setup, left, run_address)]))
        for setup, members in by_setup(series).items()
        for backend in ("", *backends)
        if (left := [each for each in members if backend in ("", each.backend)])
    ]
    models = tuple(sorted({each.setup.model for each in series}))
    return DrawnHistory(models, backends, tuple(entries))


def draw_sweeps(folders: tuple[Path, ...]) -> PageParts:
    table = sweeps_table(list(_runs(folders)), run_address, jobs_address)
    return _history_page("sweeps", "Sweeps", [table])


def draw_numbers(folders: tuple[Path, ...]) -> PageParts:
    return _history_page("numbers", "Comparisons", number_items(list(_runs(folders)), run_address))


def _runs(folders: tuple[Path, ...]) -> Iterator[Run]:
    """Those that can be read: one that is deleted or damaged is no reason to hide the others."""
    for folder in folders:
        try:
            yield read_run(folder)
        except (ToolError, OSError):
            continue


def _history_page(name: str, title: str, blocks: list[Block]) -> PageParts:
    return page_parts([Document(title, "", (Part(name, "", tuple(blocks)),))], headed=False)


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
            raise MissingPage(f"No job of {run.header.run} has the cause {cause!r}.")
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
        for key in (finding.rule_id, finding.fingerprint):
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
        raise MissingPage(f"{run.header.run} is not a sweep: it has no jobs.")
    return run


def _job(run: Run, name: str) -> JobEnded:
    try:
        return find_job(run, name)
    except ToolError as error:
        raise MissingPage(error.message, "The sweep's page lists its jobs.") from None
