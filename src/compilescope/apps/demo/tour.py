"""The tour: which steps there are here, which were asked for, and running one."""

from __future__ import annotations

import difflib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from compilescope.apps.demo.steps import STEPS, Command, TourStep
from compilescope.base.errors import ToolError
from compilescope.base.processes.child import end_process
from compilescope.base.settings import fresh_environment

PROGRAMS = Path(__file__).parent / "programs"
_UNFIT = re.compile(r"[^\w.-]|^\.+")
OUTPUT = "output"
"""Where the full output of every command is kept."""
_PROGRESS = re.compile(
    r"compilescope: (?:fix|minify|diff|run|check|preflight|logs|report): (.+), .+ (?:s|min)"
)
"""What our commands write now and then while they work, without the time it ends with."""
_PATIENCE_S = 5.0
"""How long a command may take to end after Ctrl-C. Chosen: then it is killed."""


def all_steps(commands: Collection[str]) -> list[TourStep]:
    """In order; those whose commands this version of the tool has."""
    return [step for step in STEPS if _subcommands(step) <= set(commands)]


def _subcommands(step: TourStep) -> set[str]:
    return {each.words[1] for each in step.commands if each.words[0] == "compilescope"}


def choose(found: Sequence[TourStep], wanted: Sequence[str]) -> list[TourStep]:
    """The wanted steps and those whose results they read; all where none is named."""
    if not wanted:
        return list(found)
    by_id = {step.id: step for step in found}
    chosen: set[str] = set()
    open_ids = list(wanted)
    while open_ids:
        name = open_ids.pop()
        if name not in by_id:
            near = difflib.get_close_matches(name, by_id, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"The steps: {', '.join(by_id)}."
            raise ToolError(f"There is no step {name!r}.", hint=hint)
        if name not in chosen:
            chosen.add(name)
            open_ids += by_id[name].after
    return [step for step in found if step.id in chosen]


def obstacle(step: TourStep, before: Sequence[StepResult]) -> StepResult | None:
    """Why a step can't run: something is missing here, or a step it reads from did not succeed."""
    missing = step.missing()
    if missing:
        return StepResult(step, "unavailable", missing)
    done = {result.step.id: result.status for result in before}
    for name in step.after:
        status = done.get(name)
        if status != "ok":
            inherited: Status = "unavailable" if status == "unavailable" else "skipped"
            return StepResult(step, inherited, f"it reads the result of the step {name}")
    return None


def run_step(
    step: TourStep,
    folder: Path,
    environment: Mapping[str, str],
    *,
    heard: Callable[[str], None],
    ended: Callable[[CommandResult], None],
) -> StepResult:
    """Run its commands; the first that does not do what it should ends it."""
    _place_programs(folder, step.programs)
    ran: list[CommandResult] = []
    for number, command in enumerate(step.commands, 1):
        heard(command.text)
        one = run_command(command, folder, environment, heard)
        ran.append(one)
        write(folder / OUTPUT / f"{step.order:02}-{step.id}-{number}.txt", one.plain)
        ended(one)
        if one.problem:
            return StepResult(step, "failed", f"{command.text}: {one.problem}", tuple(ran))
    absent = [name for name in step.makes if not (folder / name).exists()]
    if absent:
        return StepResult(step, "failed", f"it did not write {absent[0]}", tuple(ran))
    return StepResult(step, "ok", "", tuple(ran))


# A command of the tour as a child process: its output, and how far it is while it runs.


def run_command(
    command: Command, folder: Path, more: Mapping[str, str], heard: Callable[[str], None]
) -> CommandResult:
    """Run it to its end in `folder`; `heard` gets its progress. `more` joins its environment."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            _argv(command.words),
            cwd=folder,
            env=_environment(command, more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors if command.document else subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # Ctrl-C is for us; and what it starts can be ended with it.
            start_new_session=True,
        )
        try:
            output = _read(process, heard)
            status = process.wait()
        finally:
            _end(process)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return CommandResult(command, status, time.monotonic() - began, output, said)


def _read(process: subprocess.Popen[str], heard: Callable[[str], None]) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        progress = _PROGRESS.fullmatch(line.rstrip("\n"))
        if progress:
            heard(progress[1])
        else:
            lines.append(line)
    return "".join(lines)


def _argv(words: tuple[str, ...]) -> list[str]:
    """With this interpreter: the tour must not depend on what PATH holds."""
    ours = {"python": [sys.executable], "compilescope": [sys.executable, "-m", "compilescope"]}
    return [*ours[words[0]], *words[1:]]


def _environment(command: Command, more: Mapping[str, str]) -> dict[str, str]:
    return {
        **fresh_environment(),
        # A child that buffers its own stdout would show it after our summary on stderr.
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        **more,
        **dict(command.environment),
    }


def _end(process: subprocess.Popen[str]) -> None:
    """Whatever happened: nothing that it started goes on."""
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGINT)
    end_process(process, _PATIENCE_S)
    if process.stdout is not None:
        process.stdout.close()


# The folder that a tour runs in: its programs, its runs, everything its commands write.


def make_folder(given: Path | None, name: str = "") -> Path:
    """A new or empty folder: a tour never overwrites a file. `name`: of one that is made here;
    lists of runs call a program by its file and its folder."""
    if given is None:
        made = Path(tempfile.mkdtemp(prefix="compilescope-demo-"), _UNFIT.sub("_", name))
        made.mkdir(exist_ok=True)
        return made
    try:
        given.mkdir(parents=True, exist_ok=True)
        if any(given.iterdir()):
            raise ToolError(f"{given} is not empty.", hint="Choose a new or empty folder.")
    except OSError as error:
        raise ToolError(f"Cannot use {given}: {error.strerror}.") from None
    return given.absolute()


def _place_programs(folder: Path, names: Iterable[str]) -> None:
    """Copy the bundled programs that are not there yet."""
    for name in names:
        target = folder / name
        if not target.exists():
            write(target, (PROGRAMS / name).read_text(encoding="utf-8"))


def write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ToolError(
            f"Cannot write {path}: {error.strerror}.", hint="Choose another folder with --dir."
        ) from None


Status = Literal["ok", "failed", "skipped", "unavailable"]
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class CommandResult:
    """A command that ended."""

    command: Command
    exit_status: int
    seconds: float
    output: str
    errors: str = ""
    """Its stderr, where that is kept apart."""

    @property
    def plain(self) -> str:
        """Its output without colors."""
        return _COLOR.sub("", self.output)

    @property
    def problem(self) -> str:
        """What it did not do; empty if it did all it should."""
        if self.exit_status != self.command.expected:
            return f"exit status {self.exit_status}, expected {self.command.expected}"
        output = " ".join(self.plain.split())  # Lines wrap where the terminal ends.
        lacking = [words for words in self.command.shows if words not in output]
        return f"its output does not contain {lacking[0]!r}" if lacking else ""


@dataclass(frozen=True)
class StepResult:
    """What came of a step."""

    step: TourStep
    status: Status
    reason: str = ""
    """Why it failed or did not run."""
    ran: tuple[CommandResult, ...] = field(default=())

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.ran)
