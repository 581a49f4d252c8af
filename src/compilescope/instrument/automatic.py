"""A plain `python train.py` that uses our backends leaves a run, as under `compilescope run`.

Recording begins when such a backend is imported, and the folder is made when something compiles: a
program that compiles nothing leaves nothing. COMPILESCOPE_AUTO_RUN=0 turns it off. What goes wrong
here never reaches the program.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from compilescope.base.processes.interruptions import let_through
from compilescope.base.settings import (
    AUTO_RUN,
    current_environment,
    env_rank,
    read_settings,
    set_variable,
)
from compilescope.base.texts import visible
from compilescope.base.version import VERSION
from compilescope.instrument.recorder.autoload import is_helper, watch_process
from compilescope.instrument.recorder.journal import DiskJournal
from compilescope.instrument.recorder.process_end import UncaughtException
from compilescope.instrument.recorder.recorder import Recorder
from compilescope.instrument.torchapi.compilation.fresh import compiled_functions
from compilescope.instrument.torchapi.sinks import active_sinks
from compilescope.record import labels
from compilescope.record.bodies import Body, CompiledBefore, HookUnavailable, StanceChanged
from compilescope.record.header import FILE_NAME, RunHeader, write_header
from compilescope.record.home import hide_from_git, list_runs, make_home, new_run_id, note_made
from compilescope.record.provenance import seal_run
from compilescope.record.run import is_live
from compilescope.record.stack import Frame

_MOST_RUNS = 50
"""That programs leave by themselves in one folder; older ones go, but for those with a label.
Chosen: enough to look back on, few enough that nobody has to clean up."""
_QUIET = (HookUnavailable, CompiledBefore, StanceChanged)
"""What alone is no reason to leave a run."""
_JOINED = "COMPILESCOPE_AUTO_FOLDER"
"""`PID:FOLDER`: the run that a program leaves, for the processes that it starts."""
_OTHERS = ("COMPILESCOPE_RUN", "COMPILESCOPE_TRIAL", "PYTEST_VERSION", "PYTEST_CURRENT_TEST")
"""Set where somebody else records the program, or nobody should."""
_OFF = ("0", "false", "no", "off")
_HEEDLESS = {".hg": "Mercurial", ".svn": "Subversion", ".bzr": "Bazaar"}
_begun = False


def begin() -> None:
    """Record this process from here on, unless somebody does, or the user wants none of it."""
    global _begun
    if _begun:
        return
    _begun = True
    if not leaves_runs() or active_sinks() or is_helper() or _is_session() or _is_repro():
        return
    try:
        _begin()
    except Exception as error:  # The border: the program comes first.
        let_through(error)


def _is_repro() -> bool:
    """A script that this tool wrote: its run would take the place of the program's own."""
    return "Written by compilescope" in (sys.modules["__main__"].__doc__ or "")


def leaves_runs() -> bool:
    """May a program leave a run of its own accord?"""
    env = current_environment()
    if env.get(AUTO_RUN, "").strip().lower() in _OFF:
        return False
    return not any(env.get(name) for name in _OTHERS)


def _joined_run() -> tuple[int, Path] | None:
    """The run that a parent of this process leaves, and that parent; None: there is none."""
    pid, _, folder = current_environment().get(_JOINED, "").partition(":")
    return (int(pid), Path(folder)) if pid.isdigit() and folder else None


def _elastic_job() -> str:
    """What the ranks of one torchrun on this machine have in common; empty elsewhere."""
    env = current_environment()
    if "LOCAL_RANK" not in env or "TORCHELASTIC_RUN_ID" not in env:
        return ""
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    return "|".join([*(env.get(name, "") for name in names), str(os.getppid())])


def _heedless_keeper(folder: Path) -> str:
    """Who keeps versions of that place and reads no `.gitignore`: nobody asked for a run there."""
    for place in folder.parents:
        if (place / ".git").exists():
            return ""
        for name, keeper in _HEEDLESS.items():
            if (place / name).is_dir():
                return keeper
    return ""


def _is_session() -> bool:
    """A console, a notebook or a test run: each has its own way to record."""
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    tested = program in ("pytest", "py.test") or sys.orig_argv[1:3] == ["-m", "pytest"]
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive) or "ipykernel" in sys.modules
    return interactive or tested


def _begin() -> None:
    place = _RunFolder()
    recorder = _LateRecorder(_LateJournal(place))
    settings = read_settings()
    watch_process(recorder, settings, place.end)
    functions = compiled_functions()
    if functions:
        recorder.emit(CompiledBefore(tuple(functions)))
    place.offer()


class _RunFolder:
    """The run's folder, which need not be there yet."""

    def __init__(self) -> None:
        job, joined = _elastic_job(), _joined_run()
        self._root = os.getpid() if joined is None else joined[0]
        self._home = read_settings().home.absolute()
        label = _label()
        run = new_run_id(label)
        if job:
            # Each rank comes to the same name by itself.
            run = hashlib.sha256(job.encode()).hexdigest()[:6] + run[6:]
        self.folder = self._home / run if joined is None else joined[1]
        self._speaks = env_rank() == 0
        """Of several ranks one is enough to end the run, and to say where it is."""
        self._header = RunHeader(
            run=self.folder.name,
            tool=VERSION,
            command=_command(),
            cwd=os.getcwd(),
            root=_root_folder(),
            host=socket.gethostname(),
            started_ns=time.time_ns(),
            launcher_pid=self._root,
            main_pid=self._root,
            automatic=True,
        )
        self.problem = ""

    def offer(self) -> None:
        if self._root == os.getpid():
            set_variable(_JOINED, f"{self._root}:{self.folder}")

    def make(self) -> bool:
        """Is it there now? Called when the first event comes, in whichever process."""
        keeper = _heedless_keeper(self.folder)
        if keeper:
            self.problem = (
                f"{keeper} would see it there, as it reads no .gitignore. Name another folder in "
                "COMPILESCOPE_DIR, or use `compilescope run`"
            )
            return False
        try:
            make_home(self.folder.parent)
            self.folder.mkdir(exist_ok=True)
            # Nobody asked for it: also among files of the user's it does not show in `git status`.
            hide_from_git(self.folder)
            if not (self.folder / FILE_NAME).exists():
                write_header(self.folder, self._header)
                note_made(self.folder)
            return True
        except OSError as error:
            let_through(error)
            self.problem = error.strerror or type(error).__name__
            return False

    def end(self, raised: UncaughtException | None) -> None:
        """Of the program's own process: complete the header, and say where the run is."""
        if os.getpid() != self._root or not self._speaks:
            return
        with suppress(Exception):  # The border: the program has ended as it did.
            if self.problem:
                _say(f"this run was not recorded: {self.folder}: {self.problem}.")
            elif (self.folder / FILE_NAME).exists():
                self._complete(raised)
                short = self.folder.name.partition("-")[0]
                _say(
                    f"recorded {self.folder.name}; see `compilescope show {short}`. "
                    f"{AUTO_RUN}=0 leaves no run."
                )
                _make_room(self._home)

    def _complete(self, raised: UncaughtException | None) -> None:
        interrupted = raised is not None and raised.error == "KeyboardInterrupt"
        header = msgspec.structs.replace(
            # Ours: a child that was first to compile has begun it with a command of its own.
            self._header,
            launcher_pid=None,
            ended_ns=time.time_ns(),
            # Python's own for an exception. What the program gave sys.exit cannot be seen.
            exit_status=1 if raised is not None and not interrupted else None,
            signal=2 if interrupted else None,
        )
        # A full disk: the events are there all the same.
        with suppress(OSError):
            write_header(self.folder, header)
            seal_run(self.folder, header)


class _LateJournal(DiskJournal):
    """Makes the run with its first event. Never raises: who tells it may be no hook."""

    def __init__(self, place: _RunFolder) -> None:
        super().__init__(place.folder)
        self._place = place

    def open(self, rank: int) -> str:
        if self._place.make():
            try:
                return super().open(rank)
            except OSError as error:
                let_through(error)
                self._place.problem = error.strerror or type(error).__name__
        return str(rank)


class _LateRecorder(Recorder):
    """Holds back what says nothing of a compilation, until something does."""

    def __init__(self, journal: _LateJournal) -> None:
        super().__init__(journal)
        self._held: list[Body] = []

    def emit(
        self,
        body: Body,
        stack: Sequence[Frame] = (),
        compile_id: str | None = None,
        sources: Iterable[Frame] = (),
        more: bool = False,
    ) -> str:
        if self._name is None and isinstance(body, _QUIET):
            self._held.append(body)
            return ""
        held, self._held = self._held, []
        for each in held:
            super().emit(each)
        return super().emit(body, stack, compile_id, sources, more)


def _label() -> str:
    words = sys.orig_argv[1:]
    if words[:1] == ["-m"] and len(words) > 1:
        return words[1].rsplit(".", 1)[-1]
    name = sys.argv[0] if sys.argv else ""
    return {"-c": "code", "-": "stdin", "": "python"}.get(name, Path(name).stem)


def _command() -> tuple[str, ...]:
    """As `compilescope run` would be given it."""
    words = tuple(sys.orig_argv[1:])
    shown = words if words[:1] in (("-m",), ("-c",)) else tuple(sys.argv)
    return tuple(word.encode("utf-8", "replace").decode() for word in shown)


def _root_folder() -> str:
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    return str(script.resolve().parent) if script.is_file() else os.getcwd()


def _say(words: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"compilescope: {visible(words)}\n")
        sys.stderr.flush()


def _make_room(home: Path) -> None:
    """Programs that run all day must not fill a disk with runs that nobody asked for."""
    left = [(path, header) for path, header in list_runs(home)[0] if header.automatic]
    for path, header in left[_MOST_RUNS:]:
        if not is_live(header) and not (path / labels.FILE_NAME).exists():
            shutil.rmtree(path, ignore_errors=True)
