"""The request to `sweep`: programs, limits and engine; and the sweep itself."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli.progress import CurrentWork, ended_in_order, working
from compilescope.base.errors import ToolError
from compilescope.measure.machine import this_machine
from compilescope.scale.sweep.program import (
    ProgramListing,
    left_out_words,
    list_classes,
    list_programs,
)
from compilescope.scale.sweep.sweep import SweepEnd, SweepOptions, sweep

if TYPE_CHECKING:
    from compilescope.record.jobs import JobEnded
    from compilescope.scale.jobs.job import Engine, JobProgress

_MOST_RUNNING = 3
"""Chosen: the progress bar has one line."""


def asked_sweep(
    sources: tuple[Path, ...],
    given: dict[str, Any],
    words: tuple[str, ...],
    home: Path,
    quiet: bool,
) -> SweepEnd:
    _check(sources, given)
    listed = _listed(sources, given)
    machine = this_machine()
    jobs = given["jobs"] or max(1, (machine.cores or 1) // 2)
    local = given["engine"] == "local"
    memory = given["memory"]
    if memory is None and local and machine.memory_bytes:
        memory = machine.memory_bytes / jobs / 1e9
    device = given["device"] or ""
    wanted = SweepOptions(
        programs=listed.programs,
        base=listed.base,
        command=words,
        jobs=jobs,
        seconds=given["limit"],
        memory_bytes=int(memory * 1e9) if memory is not None else None,
        gpus=given["gpus"] if given["gpus"] is not None else float(device == "cuda"),
        threads=max(1, (machine.cores or 1) // jobs) if local else 1,
        shipped=not local and given["transformers"] is None,
        backend=given["backend"] or "",
        compile_all=given["compile_all"],
        device=device,
        bench=given["bench"],
        diff=given["diff"],
        fix=given["fix"],
    )
    if listed.left_out and not quiet:
        told = left_out_words(listed.left_out)
        print(f"compilescope: {_jobs(len(wanted.programs))}; {told}", file=sys.stderr)
    # Ray's own processes are not ours to end.
    in_order = ended_in_order(pausing=True) if local else nullcontext()
    with in_order, working("sweep", f"starting {_jobs(len(wanted.programs))}") as work:
        news = _News(work, len(wanted.programs))
        return sweep(
            wanted,
            _engine(wanted, given),
            home,
            store=given["store"] or "",
            resume=given["resume"],
            heard=news.heard,
            came=news.came,
        )


def _jobs(number: int) -> str:
    return f"{number} {'job' if number == 1 else 'jobs'}"


def _check(sources: tuple[Path, ...], given: dict[str, Any]) -> None:
    if not sources and given["transformers"] is None:
        raise ToolError(
            "There is nothing to sweep over.",
            hint="Try `compilescope sweep FOLDER`, or --transformers '*ForCausalLM'.",
        )
    if sources and given["transformers"] is not None:
        raise ToolError("Give programs or --transformers, not both.")
    uses = ("transformers", "compile_all", "bench", "diff")
    if given["backend"] and not any(given[name] for name in uses):
        raise ToolError("--backend needs --transformers, --compile-all, --bench or --diff.")
    if given["address"] and given["engine"] != "ray":
        raise ToolError("--address needs --engine ray.")
    if given["transformers"] is not None and given["compile_all"]:
        raise ToolError("--transformers compiles each model itself: leave out --compile-all.")


def _listed(sources: tuple[Path, ...], given: dict[str, Any]) -> ProgramListing:
    if given["transformers"] is None:
        return list_programs(sources)

    with working("sweep", "listing the model classes of transformers"):
        return list_classes(given["transformers"])


def _engine(wanted: SweepOptions, given: dict[str, Any]) -> Engine:
    if given["engine"] == "local":
        from compilescope.scale.jobs.local_engine import LocalEngine

        return LocalEngine(wanted.jobs)
    from compilescope.scale.jobs.ray_engine import RayEngine

    return RayEngine(
        address=given["address"],
        jobs=given["jobs"],
        working_dir=Path(wanted.base) if wanted.shipped else None,
    )


class _News:
    """Where the sweep stands, for who waits."""

    def __init__(self, work: CurrentWork, total: int) -> None:
        self._work = work
        self._total = total
        self._not_ok = 0

    def heard(self, progress: JobProgress) -> None:
        names = [name for name, _ in progress.running]
        more = f" and {len(names) - _MOST_RUNNING} more" if len(names) > _MOST_RUNNING else ""
        bad = f", {self._not_ok} not ok" if self._not_ok else ""
        doing = (
            f"running {', '.join(names[:_MOST_RUNNING])}{more}" if names else "looking for fixes"
        )
        self._work.show(f"{doing}{bad}", progress.done, self._total)

    def came(self, job: JobEnded) -> None:
        if job.state != "ok":
            self._not_ok += 1
            self._work.tell(f"{job.name}: {job.state}: {job.reason.rstrip('.')}")
