"""Writes the script of `--script`, runs it, and removes it again unless it does what it claims."""

from __future__ import annotations

import os
import shlex
import shutil
import tokenize
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from compilescope.errors import ToolError
from compilescope.model.fix_search import FixCheck, Losses
from compilescope.model.stack import origin_of
from compilescope.outputs import check_output, part_of, write_output
from compilescope.processes.guard import FileChange, journal
from compilescope.recorder.target import Target
from compilescope.repair.delivery.script import (
    MARK,
    FixedScript,
    ScriptRecipe,
    is_ours,
    is_untouched,
    make_script,
)
from compilescope.repair.delivery.script_proof import Claim, Proof, prove_script
from compilescope.repair.search.options import SearchOptions
from compilescope.repair.search.outcome import SearchResult
from compilescope.repair.search.places import main_file
from compilescope.repair.trials.version import Version

_CHOOSE = "Choose another file with --output, or overwrite it with --force."


@dataclass(frozen=True)
class ScriptPlan:
    """Where a script is to be written, and how it is run."""

    output: Path
    target: Target
    """What runs it, with the program's arguments."""
    main: str
    package: str = ""
    folder: str = ""

    @property
    def command(self) -> str:
        flag = ["-m"] if self.target.kind == "module" else []
        return shlex.join(["python", *flag, *self.target.words])

    def check(self, *, force: bool, hint: str = _CHOOSE) -> None:
        """Say what cannot be written before the search, not after."""
        if self.main and os.path.realpath(self.output) == os.path.realpath(self.main):
            raise ToolError(
                f"{self.output} is the program itself.", hint="Use --write to change it."
            )
        untouched = is_untouched(self.output)
        if is_ours(self.output) and not (force or untouched):
            raise ToolError(f"{self.output} was edited after compilescope wrote it.", hint=hint)
        check_output(self.output, force=force, ours=lambda head: untouched, hint=hint)
        folder = self.output.absolute().parent
        if not os.access(self.output if self.output.exists() else folder, os.W_OK):
            raise ToolError(f"Cannot write {self.output}: permission denied.")


@dataclass(frozen=True)
class Emitted:
    """What became of a script: handed out, or removed again."""

    plan: ScriptPlan
    script: FixedScript
    proof: Proof

    @property
    def path(self) -> str | None:
        """None where it did not hold, so that it was not handed out."""
        return str(self.plan.output) if self.proof.holds else None


def plan_script(target: Target, output: Path | None) -> ScriptPlan:
    """Beside the program, so that it imports what the program imports."""
    main = main_file(target)
    args = target.words[1:]
    if target.kind == "code" or not main:
        path = output or Path(f"{target.label}_fixed.py")
        return _as_script(path, args, main, os.getcwd())
    here = os.path.dirname(main)
    inside = os.path.basename(main) == "__main__.py"
    stem = os.path.basename(here) if inside else Path(main).stem
    if target.kind == "script":
        beside = Path(target.words[0])
        beside = (beside if beside.is_dir() else beside.parent) / f"{stem}_fixed.py"
        return _as_script(output or beside, args, main, here)
    name = target.words[0]
    package = name if inside else name.rpartition(".")[0]
    if output is not None or origin_of(main) != "user":
        path = output or Path(f"{stem}_fixed.py")
        return _as_script(path, args, main, os.getcwd(), package)
    fixed = f"{package}.{stem}_fixed" if package else f"{stem}_fixed"
    path = Path(os.path.relpath(os.path.join(here, f"{stem}_fixed.py")))
    return ScriptPlan(path, Target("module", (fixed, *args)), main)


def _as_script(
    path: Path, args: tuple[str, ...], main: str, folder: str, package: str = ""
) -> ScriptPlan:
    elsewhere = os.path.realpath(path.absolute().parent) != os.path.realpath(folder)
    target = Target("script", (str(path), *args))
    return ScriptPlan(path, target, main, package, folder if elsewhere else "")


def emit(
    plan: ScriptPlan,
    outcome: SearchResult,
    original: Target,
    options: SearchOptions,
    fixes: tuple[str, ...],
    *,
    unverified: tuple[str, ...] = (),
    left: tuple[str, ...] = (),
    mark: str = MARK,
    where: str = "",
    why_unverified: str = "",
    proven: bool = True,
    claimed: Losses | None = None,
    numbers: bool = True,
    also: Callable[[], Iterable[FixCheck]] | None = None,
) -> Emitted:
    """Write it, run it, and take it back unless it holds. Not `proven`: the program cannot be run
    here, and neither can the script. `claimed`: what the version with all changes was seen to
    lose; None where it has not run yet. `numbers`: as in a `Claim`. `also`: what else is asked of a
    script that holds, while it is there."""
    others = {file: text for file, text in outcome.files.items() if file != plan.main}
    script = make_script(
        ScriptRecipe(
            main=plan.main,
            text=_main_text(plan, outcome, original),
            files=others,
            originals=outcome.originals,
            output=str(plan.output),
            environment=outcome.environment,
            command=plan.command,
            fixes=fixes,
            package=plan.package,
            folder=plan.folder,
            unverified=unverified,
            left=left,
            mark=mark,
            where=where,
            why_unverified=why_unverified,
        )
    )
    version = Version(outcome.files, outcome.environment)
    with _written(plan, script.text.encode("utf-8", "surrogateescape")) as keep:
        proof = Proof("unverified", why_unverified)
        if proven:
            claim = Claim(version, claimed, outcome.allows, not script.refused, numbers)
            proof = prove_script(plan.target, original, claim, options)
            if proof.holds and also is not None:
                proof = proof.with_checks(also())
        if proof.holds:
            keep()
    return Emitted(plan, script, proof)


def _main_text(plan: ScriptPlan, outcome: SearchResult, original: Target) -> str:
    if plan.main in outcome.files:
        return outcome.files[plan.main]
    if not plan.main:
        return original.words[0]
    try:
        with tokenize.open(plan.main) as stream:
            return stream.read()
    except (OSError, SyntaxError, UnicodeError):
        raise ToolError(f"Cannot read {plan.main}, so no script can be written.") from None


@contextmanager
def _written(plan: ScriptPlan, data: bytes) -> Iterator[Callable[[], None]]:
    """The script is there under its name, and is what it was unless it is said to be kept."""
    kept: list[bool] = []
    try:
        target = Path(os.path.realpath(plan.output))
        before = target.read_bytes() if target.exists() else None
        with journal([FileChange(target, part_of(target), before, data)]):
            try:
                write_output(target, data)
                if plan.main:
                    shutil.copymode(plan.main, target)
                yield lambda: kept.append(True)
            finally:
                if not kept:
                    _take_back(target, before)
    except OSError as error:
        raise ToolError(f"Cannot write {plan.output}: {error.strerror}.") from None


def _take_back(target: Path, before: bytes | None) -> None:
    with suppress(OSError, ToolError):
        if before is None:
            target.unlink(missing_ok=True)
        else:
            write_output(target, before)
