"""`compilescope run`: a program under capture, and which command helps next."""

from __future__ import annotations

import contextlib
import importlib
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from compilescope.apps.cli.options import dir_option, in_python
from compilescope.apps.cli.output import told_text
from compilescope.apps.cli.program import (
    MODES,
    ProgramCommand,
    Words,
    launch_program,
    program_options,
    warn_of_lost_end,
)
from compilescope.apps.cli.streams import put, put_json, say, settle_streams, told_if_possible
from compilescope.base.settings import current_environment

if TYPE_CHECKING:
    from compilescope.instrument.recorder.launcher import ProgramOutcome
    from compilescope.knowledge.analysis.digest import Digest
    from compilescope.report.section import Reading


_CRASHES = ("backend-failure", "compiler-bug")
_REJECTED = "ConstraintError"
_MEASURING_S = 120
"""Chosen: far beyond what it takes on a machine that is not busy (3 s on two cores)."""
_ALONE = ("script", "module", "code")
"""What `fix` and `minify` can run."""


@dataclass(frozen=True)
class ProgramRun:
    """How the program was run."""

    target: Words
    home: Path | None = None
    compile_all: bool = False
    compile_names: tuple[str, ...] = ()
    backend: str | None = None

    def command(self, name: str, *options: str, compiling: bool = True) -> str:
        """`compilescope NAME` for the same program, as a shell takes it."""
        words = ["compilescope", name, *options, *(self._compiling() if compiling else ())]
        words += in_python()
        if self.home is not None and name != "minify":
            words += ["--dir", str(self.home)]
        return shlex.join([*words, *self._program(name)])

    def of_run(self, name: str, run: str, *options: str) -> str:
        """The same for the record of it."""
        where = [] if self.home is None else ["--dir", str(self.home)]
        return shlex.join(["compilescope", name, *where, *options, run])

    @property
    def fits(self) -> bool:
        """Can it be run again from one line of a shell?"""
        return self.target[0] != "stdin" and not any("\n" in word for word in self.target[1])

    @property
    def alone(self) -> bool:
        """One program that can be run as often as need be."""
        return self.target[0] in _ALONE and self.fits

    @property
    def fixable(self) -> bool:
        """Can `fix` run it?"""
        return (self.alone or self.target[0] == "torchrun") and self.fits

    @property
    def compiling(self) -> bool:
        """Did we compile what the program does not?"""
        return self.compile_all or bool(self.compile_names)

    def _compiling(self) -> list[str]:
        words = ["--compile-all"] if self.compile_all else []
        words += [word for name in self.compile_names for word in ("--compile", name)]
        return [*words, "--backend", self.backend] if self.backend else words

    def _program(self, command: str) -> list[str]:
        kind, words = self.target
        flag = [flag for flag, mode in MODES.items() if mode == kind]
        if kind in _ALONE and _would_take(command, words[1:]):
            # After a bare -- all is the program's.
            return [*flag, words[0], "--", *words[1:]]
        return [*flag, *words]


def next_step(seen: Digest, given: ProgramRun) -> str:
    """A command and, after a #, what it does; empty where there is nothing to suggest."""
    run = seen.run.partition("-")[0]
    if any(f.error == _REJECTED and not f.suppressed for f in seen.failures):
        step = given.of_run("show", run, "--section", "constraints")
        return f"{step}  # every violation, with its repro"
    crashed = any(f.category in _CRASHES and not f.suppressed for f in seen.failures)
    again = [frame for frame in seen.recompiles if frame.avoidable or frame.limit_hit]
    lost = bool(seen.sites or again or seen.eager_frames or seen.failures)
    if crashed and given.alone and not given.compiling:
        command = given.command("minify", "--predicate", "crash")
        return f"{command}  # the smallest script that fails the same way"
    if not lost and not given.fits:
        return f"{given.of_run('report', run)}  # the full report as a page" if seen.graphs else ""
    if not lost and not seen.ended.in_order:
        return f"{given.command('run')}  # again, once the program runs to its end"
    if not lost and seen.torch is None:
        return ""
    if not lost and not seen.graphs:
        if off := _switched_off():
            return f"env -u {off} {given.command('run')}  # {off}=1 turns torch.compile off"
        if given.compiling:
            return ""
        return f"{given.command('run', '--compile-all')}  # compiles its outermost modules"
    if not lost:
        more = " that is not needed" if seen.recompiles else ""
        return f"{given.command('check')}  # for CI: fails on any graph break or recompile{more}"
    if _can_mend(seen, given):
        return f"{given.command('fix')}  # tries changes and shows those it verified"
    return f"{given.of_run('explain', run)}  # why each one happens and what to change"


_WIDTH = 80
"""Columns that a suggestion and what it does may take together. Chosen: the usual terminal's."""


def _next(step: str) -> str:
    """What it does goes to a line of its own where a line has no room for both."""
    line = f"Next: {step}"
    command, mark, does = line.rpartition("  # ")
    return line if len(line) <= _WIDTH or not mark else f"{command}\n      # {does}"


def _switched_off() -> str:
    """The variable that keeps PyTorch from compiling anything; empty where none does."""
    set_to = current_environment()
    names = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
    return next((name for name in names if set_to.get(name) == "1"), "")


def _can_mend(seen: Digest, given: ProgramRun) -> bool:
    """Is there a fix to try? The program must run to its end, or fail by what may be mended."""
    from compilescope.knowledge.analysis.findings import findings

    if not given.fixable:
        return False
    refused = any(not failure.suppressed for failure in seen.failures)
    if not (seen.ended.in_order or refused):
        return False
    return any(advice.fix for finding in findings(seen) for advice in finding.advice)


def _would_take(command: str, words: tuple[str, ...]) -> bool:
    """Would the command take some of the program's own options for its?"""
    found = importlib.import_module(f"compilescope.apps.cli.commands.{command}").COMMAND
    if not isinstance(found, ProgramCommand):
        return False
    ours = found.options_after()
    return bool(ours) and any(word == "--" or word.partition("=")[0] in ours for word in words)


GROUP = "Diagnose"

_AROUND = 4
"""Lines that are printed around the summary: blanks, and the next step, which may be long."""
_KEEPER = "compilescope.change.minify.repros:keep_failure"


class _RunCommand(ProgramCommand):
    headings: ClassVar[dict[str, tuple[str, ...]]] = {
        "What to record": ("ir", "timed", "profile", "steps", "repro")
    }


@click.command(
    "run",
    cls=_RunCommand,
    short_help="Run a program and show what torch.compile did with it.",
    help="Run a program unmodified, record everything torch.compile does, and print a summary.\n\n"
    "The program keeps its output, signals and exit status; the summary goes to stderr. "
    "Everything after SCRIPT, -m, -c, --pytest or --torchrun belongs to the program.",
)
@program_options
@click.option(
    "--ir", is_flag=True, help="Also record Inductor's IR; adds about 10% to compile time."
)
@click.option(
    "--time",
    "timed",
    is_flag=True,
    help="Time every call of compiled code, inside and outside graphs.",
)
@click.option(
    "--profile",
    is_flag=True,
    help="Show where the time of a step goes: torch's profiler records a few steps once nothing "
    "compiles anymore.",
)
@click.option(
    "--steps",
    type=click.IntRange(1, 100),
    help="So many steps for --profile (5).",
)
@click.option(
    "--repro",
    is_flag=True,
    help="After the program, write a minimal script for each backend failure.",
)
@click.option("-q", "--quiet", is_flag=True, help="Don't print a summary.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON as the last line of stdout instead of a summary.",
)
@dir_option
@click.pass_obj
def COMMAND(
    target: Words,
    /,
    compile_all: bool,
    compile_names: tuple[str, ...],
    backend: str | None,
    ir: bool,
    timed: bool,
    profile: bool,
    steps: int | None,
    repro: bool,
    quiet: bool,
    as_json: bool,
    home: Path | None,
    **_flags: Any,
) -> int:
    from compilescope.base.errors import ToolError
    from compilescope.instrument.recorder.launcher import die_by
    from compilescope.knowledge.profiles.trace import USUAL_STEPS

    if steps is not None and not profile:
        raise ToolError("--steps needs --profile.")
    if profile:
        _measure_machine()
    outcome = launch_program(
        target,
        home=home,
        compile_all=compile_all,
        compile_names=compile_names,
        backend=backend,
        ir=ir,
        timed=timed,
        profile=(steps or USUAL_STEPS) if profile else 0,
        failure_keeper=_KEEPER if repro else "",
    )
    # The program's status outranks the report's.
    with told_if_possible():
        try:
            if repro:
                _write_repros(outcome)
            given = ProgramRun(target, home, compile_all, compile_names, backend)
            _report(outcome, given, quiet=quiet, as_json=as_json)
        except ToolError as error:
            say(f"compilescope: error: {error.message}")
        warn_of_lost_end(outcome)
    settle_streams()
    if outcome.exit_status < 0:
        die_by(-outcome.exit_status)
    return outcome.exit_status


def _measure_machine() -> None:
    """How near a kernel comes to what the machine can do; mostly once, before the program."""
    from compilescope.instrument.torchapi.times import roof

    if roof.is_measured():
        return
    import subprocess

    say("compilescope: measuring what this machine can do ...")
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-m", roof.__name__],
            capture_output=True,
            timeout=_MEASURING_S,
        )


def _doubt_roof(reading: Reading) -> None:
    """A kernel that is faster than the machine was found to be: that is measured again."""
    from compilescope.record.bodies import StepsProfiled

    if not reading.run.count(StepsProfiled):
        return
    from compilescope.instrument.torchapi.times import roof
    from compilescope.knowledge.analysis.step_kernels import faster_than_roof
    from compilescope.report.step_rows import step_profiles

    for profile in reading.once(step_profiles):
        if faster_than_roof(profile):
            with contextlib.suppress(OSError):
                roof.note_beaten(profile.told.device or roof.CPU)


def _write_repros(outcome: ProgramOutcome) -> None:
    """The program has ended: nothing here can disturb it."""
    from compilescope.apps.cli.progress import working
    from compilescope.change.minify.repros import write_repros

    with working("run", "writing repro scripts") as work:
        write_repros(outcome.folder, work.show)


def _report(outcome: ProgramOutcome, given: ProgramRun, *, quiet: bool, as_json: bool) -> None:
    if quiet and not as_json:
        return
    from compilescope.record.run import read_run
    from compilescope.report.section import Reading

    run = outcome.header.run.partition("-")[0]
    reading = Reading(
        read_run(outcome.folder, header=outcome.header),
        explain=lambda number: given.of_run("explain", run, "--cause", str(number)),
    )
    if as_json:
        from compilescope.knowledge.analysis.json_form import digest_entries

        put_json(digest_entries(reading.digest))
        return
    from compilescope.apps.cli.interpreters import tell_missing_torch
    from compilescope.report.document import report_document

    step = next_step(reading.digest, given)
    rest = given.of_run("show", run, "--all")
    text = told_text(report_document(reading), rest, stream=sys.stderr, reserved=_AROUND)
    # In a line of its own, however long: it is there to be copied.
    last = f"\n{_next(step)}\n" if step else ""
    put(f"\n{text}", error=True)
    _doubt_roof(reading)
    if not tell_missing_torch(reading.digest):
        print(last, end="", file=sys.stderr, flush=True)
