"""The command to give after `run`: the one that helps most with what the run showed."""

from __future__ import annotations

import importlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.cli.program import MODES, ProgramCommand, Words
from compilescope.settings import current_environment

if TYPE_CHECKING:
    from compilescope.analysis.digest import Digest

_CRASHES = ("backend-failure", "compiler-bug")
_REJECTED = "ConstraintError"
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
    lost = bool(seen.sites or seen.recompiles or seen.eager_frames or seen.failures)
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
        return f"{given.command('check')}  # for CI: fails on any graph break or recompile"
    if _can_mend(seen, given):
        return f"{given.command('fix')}  # tries changes and shows those it verified"
    return f"{given.of_run('explain', run)}  # why each one happens and what to change"


def _switched_off() -> str:
    """The variable that keeps PyTorch from compiling anything; empty where none does."""
    set_to = current_environment()
    names = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
    return next((name for name in names if set_to.get(name) == "1"), "")


def _can_mend(seen: Digest, given: ProgramRun) -> bool:
    """Is there a fix to try? The program must run to its end, or fail by what may be mended."""
    from compilescope.analysis.findings import findings

    if not given.alone:
        return False
    refused = any(not failure.suppressed for failure in seen.failures)
    if not (seen.ended.in_order or refused):
        return False
    return any(advice.fix for finding in findings(seen) for advice in finding.advice)


def _would_take(command: str, words: tuple[str, ...]) -> bool:
    """Would the command take some of the program's own options for its?"""
    found = importlib.import_module(f"compilescope.cli.commands.{command}").COMMAND
    if not isinstance(found, ProgramCommand):
        return False
    ours = found.options_after()
    return bool(ours) and any(word == "--" or word.partition("=")[0] in ours for word in words)
