"""Which fix is advised for each cause of a sweep, within a bound on time.

Each cause is asked about once, in one stored run that has it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from compilescope.analysis.digest import digest
from compilescope.analysis.findings import findings
from compilescope.errors import ToolError
from compilescope.fixes.advice import advised
from compilescope.fixes.catalogue import all_fixes
from compilescope.model.jobs import JobCause, JobEnded
from compilescope.model.run import Run, read_run
from compilescope.processes.deadline import clock
from compilescope.scale.store import Store
from compilescope.sharing.archive import UnpackLimits, opened

Key = tuple[str, str]
"""Kind and fingerprint of a cause."""
ADVICE_SECONDS = 60.0
"""For all proposals together. Chosen: nobody waits much longer at the end of a sweep; causes of
most jobs come first."""


class FixAdvice(msgspec.Struct, frozen=True):
    """What the fixes say."""

    fixes: dict[Key, str]
    """The id of the fix that is advised first, for causes that have one."""
    left: int = 0
    """Causes that were not asked about: the time was over, or their runs could not be read."""

    def filled(self, job: JobEnded) -> JobEnded:
        return msgspec.structs.replace(job, causes=tuple(map(self._cause, job.causes)))

    def _cause(self, cause: JobCause) -> JobCause:
        fix = self.fixes.get(key_of(cause), "")
        return msgspec.structs.replace(cause, fix=fix, fix_title=_titles().get(fix, ""))


def key_of(cause: JobCause) -> Key:
    return cause.kind, cause.fingerprint


def advise(
    jobs: Callable[[], Iterable[JobEnded]], store: Store, seconds: float = ADVICE_SECONDS
) -> FixAdvice:
    """`jobs` are read twice: they may be more than memory holds. Causes that most jobs have come
    first."""
    often: dict[Key, int] = {}
    where: dict[Key, str] = {}
    for job in jobs():
        for cause in job.causes:
            # What follows from another break goes away with it.
            if cause.level != "note" and job.run:
                key = key_of(cause)
                often[key] = often.get(key, 0) + 1
                where.setdefault(key, job.name)
    until = clock() + seconds
    fixes: dict[Key, str] = {}
    asked: set[Key] = set()
    for key in sorted(often, key=lambda each: -often[each]):
        if key in asked or clock() > until:
            continue
        found = _fixes_of(store, where[key])
        asked.update(found)
        fixes.update({each: fix for each, fix in found.items() if fix})
    return FixAdvice(fixes, len(often.keys() - asked))


def _fixes_of(store: Store, job: str) -> dict[Key, str]:
    """Of every cause of one job's run."""
    try:
        with tempfile.TemporaryDirectory(prefix="compilescope-sweep-") as folder:
            run = unpacked_run(store, job, Path(folder) / "run")
            seen = advised(run, digest(run))
            return {
                (each.kind, each.fingerprint): next(
                    (a.fix for a in each.advice if a.fix and a.status != "by hand"), ""
                )
                for each in findings(seen)
            }
    except (ToolError, OSError):
        return {}


def unpacked_run(store: Store, job: str, folder: Path) -> Run:
    """The run of one job, unpacked into a new folder."""
    data = store.archive(job)
    if not data:
        raise ToolError(f"The sweep kept no run of {job}.")
    folder.mkdir(parents=True)
    (folder / "artifacts").mkdir()
    packed = folder.with_suffix(".zip")
    packed.write_bytes(data)
    try:
        with opened(packed, UnpackLimits()) as archive:
            archive.extract(folder)
    finally:
        packed.unlink()
    return read_run(folder)


def _titles() -> dict[str, str]:
    return {fix.id: fix.title for fix in all_fixes()}
