"""The workbench: runs versions of one program, each in processes of its own, and cleans up.

Where it can, a process is a fork of one that has imported torch; where that would not be as good
as a fresh one, and where `fresh` is asked for, it is a new interpreter.

with Workbench(target) as bench:
    seen = bench.watch(Version())
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from compilescope.base.processes.child import run_process
from compilescope.base.processes.cleaner import without_strays
from compilescope.base.processes.deadline import Deadline, OutOfTime
from compilescope.base.processes.outcome import ProcessEnd
from compilescope.base.settings import Settings, trial_environment
from compilescope.base.version import VERSION
from compilescope.change.fixes.program_files import main_file_of
from compilescope.change.fixes.values.graph_values import ValueFacts
from compilescope.change.repair.trials.child.fatal_inputs import read_fatal
from compilescope.change.repair.trials.child.line_watcher import read_lines
from compilescope.change.repair.trials.child.moved_regions import Moved, moved_regions
from compilescope.change.repair.trials.child.ranks import read_collective, read_stderr, read_stdout
from compilescope.change.repair.trials.losses import count_operators
from compilescope.change.repair.trials.recorded_runs import (
    CapturedRun,
    ReplayedRun,
    WeighedRun,
    read_facts,
    read_record,
    share_of,
    survey_folder,
)
from compilescope.change.repair.trials.run_look import RunLook
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.warm.parent import WarmParent
from compilescope.instrument.recorder import launcher
from compilescope.instrument.recorder.target import Target
from compilescope.instrument.torchapi.plain_torch import PlainTorch
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run, new_run_id
from compilescope.record.run import read_run

_BOOT = Path(__file__).parent / "boot"
_CAPTURE = Path(launcher.__file__).parent
_REPLAYING = 0.6
"""Of a process' time; the rest is the program's own. Chosen: a program that uses most of its limit
itself would leave replays nothing, and the other way round."""
_JUDGING = "compilescope.change.repair.trials.replay_checks"
_WEIGHING = "compilescope.change.repair.trials.child.weigher:begin"
_START_S, _ANSWER_S = 300.0, 600.0
"""To start the warm process, and to have replays judged there. Chosen: minutes more than a slow
machine needs; past it we do without. The search's deadline shortens both."""
Progress = Callable[[str], None]


class Launch(NamedTuple):
    """A process that is ready to be started."""

    command: list[str]
    environment: dict[str, str]
    folder: Path
    """Its own; `stdin` is in it."""


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
        plain: bool = False,
        progress: Progress | None = None,
        warm: WarmParent | None = None,
        deadline: Deadline | None = None,
        original: Version | None = None,
    ) -> None:
        """`compile_names` and `backend` as `compilescope run --compile` has them; `limit_s` is for
        one process, `deadline` for all. `plain`: packages of devices that are missing are stood in
        for. `warm` forks the processes; without it all are fresh ones. `original`: where that is
        not what is on disk, the version whose regions the others are asked for."""
        target.check()
        self.target = target
        self._plain = plain
        self.limit_s = limit_s
        self.seed = seed
        self._settings = Settings(compile_names=tuple(compile_names), compile_backend=backend)
        self._stdin = stdin
        self._original = original or Version()
        self.thorough = False
        """Are regions called on more inputs than a fix of ours needs?"""
        self.wary = False
        """Likewise for what nobody vouches for: other sizes, other numbers beside the arguments."""
        self.watched: dict[object, Mapping[str, Collection[int]]] = {}
        """By a version's key, by file: lines of which replays note whether they run."""
        self._tick = progress or (lambda doing: None)
        self._folder = Path(tempfile.mkdtemp(prefix="compilescope-"))
        self._warm = warm or WarmParent()
        self.cold = "" if warm is not None else "there is no warm process"
        """Why all processes are fresh ones; empty where they need not be."""
        self.launched = target.kind == "torchrun"
        """Are the processes of the program started by a launcher?"""
        if self.launched:
            self.cool("torchrun starts the processes")
        self._collective: list[int] = []
        """The regions that one process cannot repeat alone."""
        self.deadline = deadline or Deadline()
        """What runs into it raises `OutOfTime`."""
        self.watch_s = self.probe_s = 0.0
        """The longest run under capture so far, and the longest with replays."""
        self._captured: dict[object, CapturedRun] = {}
        self._probed: dict[object, ReplayedRun] = {}
        self._shares: dict[object, float | None] = {}
        self._others: list[Workbench] = []

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for other in self._others:
            other.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def other(self, original: Version) -> Workbench:
        """For versions that are held against another one: the same program, run likewise. It is
        closed with this one."""
        made = Workbench(
            self.target,
            compile_names=self._settings.compile_names,
            backend=self._settings.compile_backend,
            limit_s=self.limit_s,
            stdin=self._stdin,
            seed=self.seed,
            plain=self._plain,
            progress=self._tick,
            warm=self._warm,
            deadline=self.deadline,
            original=original,
        )
        made.cold = self.cold
        self._others.append(made)
        return made

    def cool(self, reason: str) -> None:
        """From now on every process is a fresh one."""
        self.cold = self.cold or reason

    @property
    def start_s(self) -> float:
        """What a fresh process takes beyond a warm one."""
        return self._warm.start_s

    def watch(
        self,
        version: Version,
        *,
        timed: bool = False,
        environment: dict[str, str] | None = None,
        fresh: bool = False,
        again: bool = False,
        light: bool = False,
        enough: Callable[[CapturedRun], object] | None = None,
    ) -> CapturedRun:
        """Run a version under capture: once, unless `again` is asked for, or times are. `light`:
        without Inductor. Where `enough` says so of what is seen so far, a forked process ends."""
        key = (version.key, fresh or bool(self.cold), light)
        if not (timed or again or environment) and key in self._captured:
            return self._captured[key]
        seen = self._watch(version, timed, environment, fresh=fresh, light=light, enough=enough)
        if not (timed or again or environment or seen.is_part):
            self._captured[key] = seen
        return seen

    def _watch(
        self,
        version: Version,
        timed: bool,
        environment: dict[str, str] | None,
        *,
        fresh: bool,
        light: bool,
        enough: Callable[[CapturedRun], object] | None,
    ) -> CapturedRun:
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
        look = RunLook(folder, enough) if enough is not None else None
        settings = self._settings._replace(run_dir=folder, time=timed)
        started = msgspec.structs.replace
        ended = self._run(
            version,
            place,
            settings,
            {"light": light},
            environment=environment,
            started=lambda pid: write_header(folder, started(header, main_pid=pid)),
            fresh=fresh,
            enough=look,
        )
        if look is not None and look.found is not None:
            return look.found
        header = msgspec.structs.replace(
            header,
            ended_ns=time.time_ns(),
            exit_status=ended.status if ended.status >= 0 else None,
            signal=-ended.status if ended.status < 0 else None,
        )
        write_header(folder, header)
        run = read_run(folder, live=False)
        return CapturedRun(
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
        like: ReplayedRun | None = None,
        focus: Collection[tuple[str, int]] = (),
        surveying: Collection[tuple[str, int]] = (),
        sizes: bool = False,
        raising: bool = True,
        light: bool = False,
        numbers: Collection[float] = (),
        noted: Mapping[str, Collection[int]] | None = None,
    ) -> ReplayedRun:
        """Run a version eagerly, and call each of its compiled regions again on copies of what it
        was given: eagerly and in float64, or eagerly and compiled.

        `like` an earlier probe: on the same inputs. `focus` are lines in whose files it is noted
        which sides of branches were taken, and `surveying` are those around which it is noted what
        variables hold. `sizes`: other sizes too. `raising`: also on inputs on which the earlier
        one raises. `light`: compiled without Inductor. `numbers`: inputs are made of these too,
        where the bench is wary. `noted`: by file, lines whose conditions are noted."""
        key = (version.key, like.folder, raising, light) if compiled and like is not None else None
        if key is not None and key in self._probed:
            return self._probed[key]
        self._tick("replaying compiled regions" if compiled else "replaying regions eagerly")
        options = {
            "compiled": compiled,
            "sizes": sizes,
            "thorough": self.thorough,
            "wary": self.wary,
            "numbers": list(numbers),
            "noted": {file: sorted(lines) for file, lines in (noted or {}).items()},
            "seconds": self.limit_s * _REPLAYING,
            "focus": [list(item) for item in focus],
            "like": like.plan_without(() if raising else like.raising) if like else None,
            "collective": self._collective,
            "light": light,
            "surveying": list(surveying),
        }
        probed = self._replayed(version, options)
        if key is not None:
            self._probed[key] = probed
        return probed

    def _replayed(self, version: Version, options: dict[str, Any]) -> ReplayedRun:
        """Again without a family of made-up inputs that ends the process, and without a region in
        which processes work together. Another version has to bear what the original did."""
        fatal: dict[int, list[str]] = {}
        while True:
            probed = self._replayed_once(version, {**options, "fatal": fatal})
            region = read_collective(probed.folder)
            if region is not None and options["like"] is None:
                self._collective.append(region)
                continue
            asked = read_fatal(probed.folder)
            known = fatal.setdefault(asked.region, []) if asked is not None else []
            if asked is None or asked.family in known or options["like"] is not None:
                return probed
            known.append(asked.family)

    def _replayed_once(
        self, version: Version, options: dict[str, Any], *, fresh: bool = False
    ) -> ReplayedRun:
        place = self._place()
        asked = {"probe": {**options, "folder": str(place)}, "light": options["light"]}
        asked["noted"] = options["noted"]
        if options["surveying"]:
            asked["survey"] = _survey(survey_folder(place), options["surveying"])
        ended = self._run(version, place, self._settings, asked, fresh=fresh)
        killed = ended.status < 0 and not ended.timed_out
        spares = read_fatal(place) is not None and options["like"] is None
        if killed and not (spares or fresh or self.cold):
            # A fork may die of what it was forked from: the word of a fresh process counts.
            return self._replayed_once(version, options, fresh=True)
        return ReplayedRun(
            folder=place,
            record=read_record(place),
            exit_status=ended.status,
            timed_out=ended.timed_out,
            stdout=ended.stdout,
            stderr=ended.stderr,
            lines=read_lines(place),
        )

    def ask(self, judge: str, asked: dict[str, Any]) -> Any:
        """What a function of `judging` says: it needs torch, so where there is a warm process, it
        is asked there."""
        if not self.cold:
            limit_s = self.deadline.limit(_ANSWER_S)
            answer = self._warm.ask(f"{_JUDGING}:{judge}", asked, self._place(), limit_s)
            if answer is not None:
                return answer["answer"]
        # Here it cannot be stopped: torch has to be imported first.
        if self.deadline.left_s < self.start_s:
            raise OutOfTime
        return getattr(importlib.import_module(_JUDGING), judge)(asked)

    def survey(self, version: Version, places: Collection[tuple[str, int]]) -> ValueFacts:
        """What the variables hold in the functions around these lines, run eagerly."""
        self._tick("recording values")
        place = self._place()
        self._run(version, place, self._settings, {"survey": _survey(place, places)})
        return read_facts(place)

    def moves(self, version: Version) -> bool:
        """Does it compile something else than the original does? Then its own regions' times are
        those of other work."""
        return bool(self._moved(version))

    def weigh(
        self, version: Version, counting: str = "", *, caches: Path | None = None
    ) -> WeighedRun | None:
        """What calls of the original's regions take in a version; or how many operators they run:
        `all`, or those in `graphs`. None where it was not told. `caches`: where compiled code is
        kept."""
        self._tick("measuring a version")
        place = self._place()
        asked = {
            "task": {"name": _WEIGHING, "given": {"folder": str(place), "counting": counting}},
            "light": bool(counting),
            "moved": self._moved(version),
            "eager_random": False,
        }
        environment = {"TORCHINDUCTOR_CACHE_DIR": str(caches)} if caches is not None else None
        self._run(version, place, self._settings, asked, environment=environment)
        try:
            return msgspec.json.decode((place / "weighed.json").read_bytes(), type=WeighedRun)
        except (OSError, msgspec.DecodeError):
            return None

    def eager_share(self, version: Version) -> float | None:
        """Of the operators of a call of what the original compiles, those that run eagerly; None
        where they could not be counted. Counted once for each version."""
        if version.key not in self._shares:
            every = self.weigh(version, "all")
            share = share_of(self.weigh(version, "graphs"), every)
            self._shares[version.key] = 1.0 - share if share is not None else None
        return self._shares[version.key]

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
        fresh: bool = False,
        enough: Callable[[], bool] | None = None,
    ) -> ProcessEnd:
        command, child = self._command(version, place, settings, asked, environment)
        if not (fresh or self.cold):
            self._warm.prepare(child, self.deadline.limit(_START_S))  # Not on this run's time.
        limit_s = self.deadline.limit(self.limit_s)
        ended = None
        if not (fresh or self.cold):
            ended = self._run_warm(version, command, child, place, limit_s, started, enough)
        if ended is None:
            with without_strays():
                ended = run_process(
                    command, child, place, stdin=self._stdin, limit_s=limit_s, started=started
                )
        if self.launched:
            ended = replace(
                ended, stdout=read_stdout(place), stderr=read_stderr(place) or ended.stderr
            )
        if ended.timed_out and limit_s < self.limit_s:
            raise OutOfTime
        if "probe" in asked:
            self.probe_s = max(self.probe_s, ended.seconds)
        elif settings.run_dir is not None:
            self.watch_s = max(self.watch_s, ended.seconds)
        return ended

    def launch(
        self,
        version: Version,
        asked: dict[str, Any],
        environment: dict[str, str],
    ) -> Launch:
        """For who starts the process himself, and talks to it while it runs."""
        place = self._place()
        command, child = self._command(version, place, self._settings, asked, environment)
        (place / "stdin").write_bytes(self._stdin)
        return Launch(command, child, place)

    def _command(
        self,
        version: Version,
        place: Path,
        settings: Settings,
        asked: dict[str, Any],
        environment: dict[str, str] | None,
    ) -> tuple[list[str], dict[str, str]]:
        """What to start, in which environment; what the process reads first is written."""
        trial = place / "trial.json"
        names = [name for name in settings.compile_names if ":" not in name]
        options = {
            "files": self._files(version),
            "absent": sorted(version.absent),
            "plain": self._plain,
            "seed": self.seed,
            "compile_names": names,
            "backend": settings.compile_backend,
            "eager_random": not settings.time,
            "launched": self.launched,
            **asked,
        }
        if "probe" in asked:
            options["moved"] = self._moved(version)
            watched = self.watched.get(version.key, {})
            options["watched"] = {file: sorted(rows) for file, rows in watched.items()}
        trial.write_text(json.dumps(options), encoding="utf-8")
        boots = [_BOOT, _CAPTURE / "boot"] if settings.run_dir is not None else [_BOOT]
        more = {**version.environment, **(environment or {})}
        functions = tuple(name for name in settings.compile_names if ":" in name)
        command = self._own_target.command(functions)
        return command, trial_environment(settings, boots, trial, self.seed, more)

    @property
    def _own_target(self) -> Target:
        """Ranks meet at a port of their own: several versions run at the same time."""
        target = self.target
        if self.launched and target.machines == "1":
            return replace(target, words=("--standalone", *target.words))
        return target

    def _files(self, version: Version) -> dict[str, str]:
        """Under the names of the program's own files."""
        files = dict(version.files)
        if not self._plain:
            return files
        main = main_file_of(self.target.shown, os.getcwd())
        text = version.text_of(main) if main else None
        if text is not None:
            # Only where a device is named does the text differ: what is as it was stays on disk.
            plain = PlainTorch().on_cpu(text)
            if plain != text:
                files[os.path.abspath(main)] = plain
        return files

    def _moved(self, version: Version) -> dict[str, Moved]:
        """By file: what the original compiles, and the version only in parts."""
        found: dict[str, Moved] = {}
        for path, text in version.files.items():
            old = self._original.text_of(path)
            moved = moved_regions(old, text) if old is not None else []
            if moved:
                found[path] = moved
        return found

    def _run_warm(
        self,
        version: Version,
        command: list[str],
        environment: dict[str, str],
        place: Path,
        limit_s: float,
        started: Callable[[int], None] | None,
        enough: Callable[[], bool] | None,
    ) -> ProcessEnd | None:
        """None where it takes a fresh process."""
        while True:
            with without_strays():
                found = self._warm.run(
                    command,
                    environment,
                    place,
                    stdin=self._stdin,
                    limit_s=limit_s,
                    started=started,
                    enough=enough,
                )
            if isinstance(found, ProcessEnd):
                return found
            # Outside of the block: this process stays.
            if not self._warm.start_anew(command, self.deadline.limit(_START_S)):
                break
        if self._warm.reason or version == self._original:
            self.cold = found  # It is so with every version.
        return None


def _survey(folder: Path, places: Collection[tuple[str, int]]) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    return {"folder": str(folder), "places": [list(item) for item in places]}
