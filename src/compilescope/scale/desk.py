"""What a task of a job works with: a folder of its own, programs within limits, files to keep."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from compilescope.errors import ToolError
from compilescope.model.provenance import SEALS
from compilescope.processes.child import run_process
from compilescope.processes.outcome import ProcessEnd
from compilescope.scale.job import JobLimits

_TAIL = 1 << 20
"""Of each stream of a program: enough for any traceback. Chosen."""
_OLDEST = (1980, 1, 1, 0, 0, 0)


class WorkDesk:
    """What `scale.work` hands to a task; `place` is a folder that nobody else uses."""

    def __init__(
        self,
        place: Path,
        limits: JobLimits,
        *,
        environment: Mapping[str, str] | None = None,
        began: Callable[[int], None] = lambda pid: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.folder = place / "desk"
        self.folder.mkdir()
        self._place = place
        self._limits = limits
        self._more = dict(environment or {})
        self._began = began
        self._ended = ended
        self._kept: Path | None = None
        self.seconds = 0.0
        """In programs."""

    def run(
        self, command: list[str], environment: Mapping[str, str], *, cwd: Path | None = None
    ) -> ProcessEnd:
        try:
            ended = run_process(
                command,
                {**environment, **self._more},
                self._place,
                limit_s=self._limits.seconds,
                memory_bytes=self._limits.memory_bytes,
                tail_bytes=_TAIL,
                cwd=cwd,
                started=self._began,
            )
        finally:
            self._ended()
        self.seconds += ended.seconds
        return ended

    def keep(self, folder: Path) -> None:
        if self.folder.resolve() not in (folder.resolve(), *folder.resolve().parents):
            raise ToolError(f"{folder} is not in the job's folder.")
        self._kept = folder

    def archive(self) -> bytes:
        """What `keep` named, as a zip file; equal files make equal bytes."""
        if self._kept is None or not self._kept.is_dir():
            return b""
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in _files(self._kept):
                entry = zipfile.ZipInfo(path.relative_to(self._kept).as_posix(), _OLDEST)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
        return written.getvalue()


def _files(folder: Path) -> list[Path]:
    """Links are left out: what they name is not on another machine. A seal is no part of an
    archive."""
    found = []
    for place, _, names in os.walk(folder):
        paths = (Path(place) / name for name in names if name != SEALS)
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
    return sorted(found)
