"""A sweep from its programs to its run: planned, run by an engine into a store, recorded."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.version import VERSION
from compilescope.record.benchmark import Machine
from compilescope.record.bodies import Body
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run, list_runs, new_run_id, note_made
from compilescope.record.jobs import JobEnded
from compilescope.record.provenance import seal_run
from compilescope.record.run import is_live
from compilescope.scale.jobs.job import Engine, Job, JobLimits, JobProgress
from compilescope.scale.jobs.schedule import run_jobs
from compilescope.scale.jobs.store import Store, StorePlan, plan_of
from compilescope.scale.sweep.program import TASK, ProgramRequest, SweepProgram
from compilescope.scale.sweep.record import (
    ADVICE_SECONDS,
    SweepRecord,
    advise,
    job_ended,
    store_url,
    write_place,
)

_STORE = "store"


class SweepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep does, and with what."""

    programs: tuple[SweepProgram, ...]
    base: str
    command: tuple[str, ...]
    """As the user typed it, from `sweep` on."""
    jobs: int
    seconds: float | None
    memory_bytes: int | None
    gpus: float = 0
    threads: int | None = None
    shipped: bool = False
    backend: str = ""
    compile_all: bool = False
    device: str = ""
    bench: bool = False
    diff: bool = False
    fix: bool = False

    def work(self, *, planned: bool = False) -> Iterator[Job]:
        """Its jobs. How they are spread over machines is no part of what is `planned`: a sweep may
        be resumed with fewer jobs at a time, or on a cluster."""
        for program in self.programs:
            asked = ProgramRequest(
                program=program,
                base="" if planned else self.base,
                shipped=self.shipped and not planned,
                backend=self.backend,
                compile_all=self.compile_all,
                device=self.device,
                threads=None if planned else self.threads,
                bench=self.bench,
                diff=self.diff,
                fix=self.fix,
            )
            yield Job(
                name=program.name,
                task=TASK,
                payload=msgspec.to_builtins(asked),
                limits=JobLimits(
                    seconds=self.seconds, memory_bytes=None if planned else self.memory_bytes
                ),
                gpus=0 if planned else self.gpus,
            )

    def plan(self) -> StorePlan:
        options: dict[str, Any] = {
            "--backend": self.backend or None,
            "--device": self.device or None,
            "--limit": self.seconds,
            "--compile-all": self.compile_all or None,
            "--bench": self.bench or None,
            "--diff": self.diff or None,
            "--fix": self.fix or None,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return plan_of(self.work(planned=True), given)


class SweepEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep that has ended, or was stopped."""

    folder: Path
    exit_status: Literal[0, 1, 130]
    remarks: tuple[str, ...] = ()
    """What its reader must know, in sentences."""


def unfinished(home: Path, plan: StorePlan) -> Path:
    """The latest sweep with this plan that did not run to its end."""
    for folder, header in list_runs(home)[0]:
        stopped = header.ended_ns is None or header.exit_status == 130
        if header.command[:1] != ("sweep",) or not stopped or is_live(header):
            continue
        url = store_url(folder)
        stored = Store(url).sweep() if url else None
        if stored is not None and _is_same(stored, plan):
            return folder
    raise ToolError(
        f"There is no unfinished sweep of these programs with these options in {home}.",
        "Leave out --resume to start one.",
    )


def _is_same(stored: StorePlan, plan: StorePlan) -> bool:
    fields = ("version", "jobs", "jobs_hash", "options")
    return all(getattr(stored, name) == getattr(plan, name) for name in fields)


def sweep(
    wanted: SweepOptions,
    engine: Engine,
    home: Path,
    *,
    store: str = "",
    resume: bool = False,
    heard: Callable[[JobProgress], None],
    came: Callable[[JobEnded], None],
) -> SweepEnd:
    """Run the jobs that the store has not; what is done is recorded however this ends.

    Nothing is written to `home` before the store and the engine are known to work.
    """
    plan = wanted.plan()
    earlier = unfinished(home, plan) if resume and not store else None
    with contextlib.ExitStack() as stack:
        if store:
            kept = stack.enter_context(Store(store))
            kept.begin(plan, resume=resume)
        running = stack.enter_context(contextlib.ExitStack())
        running.enter_context(engine)
        folder, header = _begun(wanted, home, earlier)
        write_place(folder, store or _STORE)
        if not store:
            kept = stack.enter_context(Store(str(folder / _STORE)))
            kept.begin(plan, resume=resume)
        record = SweepRecord(folder, header)
        stopped, machines = _run(wanted, engine, kept, record, heard, came)
        running.close()
        return _finished(wanted, kept, record, machines, stopped=stopped)


def _begun(wanted: SweepOptions, home: Path, earlier: Path | None) -> tuple[Path, RunHeader]:
    header = RunHeader(
        run=earlier.name if earlier else new_run_id("sweep"),
        tool=VERSION,
        command=wanted.command,
        cwd=os.getcwd(),
        root=wanted.base,
        host=socket.gethostname(),
        started_ns=time.time_ns(),
        launcher_pid=os.getpid(),
    )
    if earlier is None:
        return create_run(home.absolute(), header), header
    write_header(earlier, header)
    seal_run(earlier, header)
    note_made(earlier)
    return earlier.absolute(), header


def _run(
    wanted: SweepOptions,
    engine: Engine,
    store: Store,
    record: SweepRecord,
    heard: Callable[[JobProgress], None],
    came: Callable[[JobEnded], None],
) -> tuple[bool, tuple[Machine, ...]]:
    """Was it stopped, and the machines that took part or could not."""
    machines: tuple[Machine, ...] = ()
    for result in store.results():
        record.add(job_ended(result))
    try:
        machines = engine.machines()
        for machine in machines:
            record.add(machine)
        for result in run_jobs(tuple(wanted.work()), engine, store, heard):
            if result.state != "cancelled":
                ended = job_ended(result)
                record.add(ended)
                came(ended)
        return False, engine.machines() or machines
    except KeyboardInterrupt:
        return True, machines


def _finished(
    wanted: SweepOptions,
    store: Store,
    record: SweepRecord,
    machines: Iterable[Machine],
    *,
    stopped: bool,
) -> SweepEnd:
    """The run as it stays: jobs in the order of the plan, with the fixes that are advised."""
    seconds = 0.0 if stopped else ADVICE_SECONDS
    advised = advise(lambda: map(job_ended, store.results()), store, seconds)
    ended = {result.name: advised.filled(job_ended(result)) for result in store.results()}
    jobs = [
        ended.get(program.name)
        or JobEnded(
            name=program.name, state="cancelled", reason="The sweep was stopped before it ended."
        )
        for program in wanted.programs
    ]
    whole = all(job.state == "ok" for job in jobs)
    status: Literal[0, 1, 130] = 130 if stopped else 0 if whole else 1
    bodies: list[Body] = [*machines, *jobs]
    record.end(bodies, status)
    remarks = list(store.notes)
    if advised.left and not stopped:
        remarks.append(f"No fix was looked for in {advised.left} causes: the time was up.")
    return SweepEnd(folder=record.folder, exit_status=status, remarks=tuple(remarks))
