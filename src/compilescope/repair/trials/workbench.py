"""The workbench: runs versions of one program, each in processes of its own, and cleans up.

with Workbench(target) as bench:
    seen = bench.watch(Version())
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from compilescope.capture import launcher
from compilescope.capture.target import Target
from compilescope.fixes.facts import Facts
from compilescope.model.header import RunHeader, write_header
from compilescope.model.home import create_run, new_run_id
from compilescope.model.run import read_run
from compilescope.repair.trials.counting import count_operators
from compilescope.repair.trials.process import Ended, run_process
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.watched import Probed, Watched, read_record
from compilescope.rules.digest import digest
from compilescope.settings import Settings, torch_loads_extensions, trial_environment
from compilescope.version import VERSION

_BOOT = Path(__file__).parent / "boot"
_CAPTURE = Path(launcher.__file__).parent
_REPLAYING = 0.6
"""Of a process' time; the rest is the program's own."""
Progress = Callable[[str], None]


class Workbench:
    """Owns a temporary folder, which is gone at the end, whatever happens."""

    def __init__(
        self,
        target: Target,
        *,
        compile_names: tuple[str, ...] = (),
        backend: str | None = None,
        limit_s: float = 300.0,
        stdin: bytes = b"",
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        """`compile_names` and `backend` as `compilescope run --compile` has them; `limit_s` is for
        one process."""
        target.check()
        self.target = target
        self.limit_s = limit_s
        self.seed = seed
        self._settings = Settings(compile_names=tuple(compile_names), compile_backend=backend)
        self._stdin = stdin
        self._tick = progress or (lambda doing: None)
        self._folder = Path(tempfile.mkdtemp(prefix="compilescope-"))

    def __enter__(self) -> Workbench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def watch(
        self, version: Version, *, timed: bool = False, environment: dict[str, str] | None = None
    ) -> Watched:
        """Run a version under capture."""
        self._tick("running the program")
        place = self._place()
        header = RunHeader(
            run=new_run_id(self.target.label),
            tool=VERSION,
            command=self.target.shown,
            cwd=os.getcwd(),
            root=self.target.root,
            host=socket.gethostname(),
            started_ns=time.time_ns(),
            launcher_pid=os.getpid(),
        )
        folder = create_run(place / "runs", header)
        settings = replace(self._settings, run_dir=folder, time=timed)
        started = msgspec.structs.replace
        ended = self._run(
            version,
            place,
            settings,
            {},
            environment=environment,
            started=lambda pid: write_header(folder, started(header, main_pid=pid)),
        )
        header = msgspec.structs.replace(
            header,
            ended_ns=time.time_ns(),
            exit_status=ended.status if ended.status >= 0 else None,
            signal=-ended.status if ended.status < 0 else None,
        )
        write_header(folder, header)
        run = read_run(folder, live=False)
        return Watched(
            version=version,
            run=run,
            digest=digest(run),
            exit_status=ended.status,
            timed_out=ended.timed_out,
            stdout=ended.stdout,
            stderr=ended.stderr,
            seconds=ended.seconds,
            operators=count_operators(run),
            folder=folder,
        )

    def probe(
        self,
        version: Version,
        *,
        compiled: bool,
        like: Probed | None = None,
        focus: Collection[tuple[str, int]] = (),
        sizes: bool = False,
    ) -> Probed:
        """Run a version eagerly, and call each of its compiled regions again on copies of what it
        was given: eagerly and in float64, or eagerly and compiled.

        `like` an earlier probe: on the same inputs. `focus` are lines in whose files it is noted
        which sides of branches were taken. `sizes`: other sizes too."""
        self._tick("replaying compiled regions" if compiled else "replaying regions eagerly")
        place = self._place()
        wishes = {
            "folder": str(place),
            "compiled": compiled,
            "sizes": sizes,
            "seconds": self.limit_s * _REPLAYING,
            "focus": [list(item) for item in focus],
            "like": like.plan if like is not None else None,
        }
        ended = self._run(version, place, self._settings, {"probe": wishes})
        return Probed(
            version=version,
            folder=place,
            record=read_record(place),
            exit_status=ended.status,
            timed_out=ended.timed_out,
            stdout=ended.stdout,
            stderr=ended.stderr,
            seconds=ended.seconds,
        )

    def survey(self, version: Version, places: Collection[tuple[str, int]]) -> Facts:
        """What the variables hold in the functions around these lines, run eagerly."""
        self._tick("looking at values")
        place = self._place()
        wishes = {"folder": str(place), "places": [list(item) for item in places]}
        self._run(version, place, self._settings, {"survey": wishes})
        try:
            return msgspec.json.decode((place / "facts.json").read_bytes(), type=Facts)
        except (OSError, msgspec.DecodeError):
            return Facts()

    def _place(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._folder))

    def _run(
        self,
        version: Version,
        place: Path,
        settings: Settings,
        asked: dict[str, Any],
        *,
        environment: dict[str, str] | None = None,
        started: Callable[[int], None] | None = None,
    ) -> Ended:
        trial = place / "trial.json"
        names = [name for name in settings.compile_names if ":" not in name]
        wishes = {
            "files": dict(version.files),
            "seed": self.seed,
            "compile_names": names,
            "backend": settings.compile_backend,
            "eager_random": not settings.time,
            **asked,
        }
        trial.write_text(json.dumps(wishes), encoding="utf-8")
        entry = _CAPTURE / ("boot" if torch_loads_extensions() else "boot_early")
        boots = [_BOOT, entry] if settings.run_dir is not None else [_BOOT]
        more = {**version.environment, **(environment or {})}
        functions = tuple(name for name in settings.compile_names if ":" in name)
        return run_process(
            self.target.command(functions),
            trial_environment(settings, boots, trial, self.seed, more),
            place,
            stdin=self._stdin,
            limit_s=self.limit_s,
            started=started,
        )
