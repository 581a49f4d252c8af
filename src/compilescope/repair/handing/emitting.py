"""Where the script of `--script` goes and how it is run; it is handed out only if it holds."""

from __future__ import annotations

import os
import shlex
import shutil
import tokenize
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from compilescope.capture.target import Target
from compilescope.errors import ToolError
from compilescope.model.stack import origin_of
from compilescope.repair.handing.proving import Proof, prove_script
from compilescope.repair.handing.script import Recipe, Script, is_ours, make_script
from compilescope.repair.search.outcome import Outcome
from compilescope.repair.search.places import main_file
from compilescope.repair.search.wishes import Wishes
from compilescope.repair.trials.version import Version


@dataclass(frozen=True)
class Plan:
    """A script that is to be."""

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

    def check(self, *, force: bool) -> None:
        """Say what cannot be written before the search, not after."""
        folder = self.output.absolute().parent
        if not folder.is_dir():
            raise ToolError(f"Cannot write {self.output}: folder {folder} does not exist.")
        if self.output.is_dir():
            raise ToolError(f"Cannot write {self.output}: it is a folder.")
        if self.main and os.path.realpath(self.output) == os.path.realpath(self.main):
            raise ToolError(
                f"{self.output} is the program itself.", hint="Use --write to change it."
            )
        if self.output.exists() and not (force or is_ours(self.output)):
            raise ToolError(
                f"{self.output} already exists, and compilescope did not write it.",
                hint="Choose another file with --output, or overwrite it with --force.",
            )
        if not os.access(self.output if self.output.exists() else folder, os.W_OK):
            raise ToolError(f"Cannot write {self.output}: permission denied.")


@dataclass(frozen=True)
class Emitted:
    """What became of it."""

    plan: Plan
    script: Script
    proof: Proof

    @property
    def path(self) -> str | None:
        """None where it did not hold, so that it was not handed out."""
        return str(self.plan.output) if self.proof.holds else None


def plan_script(target: Target, output: Path | None) -> Plan:
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
    return Plan(path, Target("module", (fixed, *args)), main)


def _as_script(
    path: Path, args: tuple[str, ...], main: str, folder: str, package: str = ""
) -> Plan:
    elsewhere = os.path.realpath(path.absolute().parent) != os.path.realpath(folder)
    target = Target("script", (str(path), *args))
    return Plan(path, target, main, package, folder if elsewhere else "")


def emit(
    plan: Plan, outcome: Outcome, original: Target, wishes: Wishes, fixes: tuple[str, ...]
) -> Emitted:
    """Write it, run it, and take it back unless it holds."""
    others = {file: text for file, text in outcome.files.items() if file != plan.main}
    script = make_script(
        Recipe(
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
        )
    )
    version = Version(outcome.files, outcome.environment)
    before = plan.output.read_bytes() if plan.output.exists() else None
    held = False
    try:
        _write(plan, script.text.encode("utf-8", "surrogateescape"))
        proof = prove_script(plan.target, original, version, wishes, whole=not script.refused)
        held = proof.holds
    finally:
        if not held:
            _take_back(plan, before)
    return Emitted(plan, script, proof)


def _main_text(plan: Plan, outcome: Outcome, original: Target) -> str:
    if plan.main in outcome.files:
        return outcome.files[plan.main]
    if not plan.main:
        return original.words[0]
    try:
        with tokenize.open(plan.main) as stream:
            return stream.read()
    except (OSError, SyntaxError, UnicodeError):
        raise ToolError(f"Cannot read {plan.main}, so no script can be written.") from None


def _write(plan: Plan, data: bytes) -> None:
    part = plan.output.with_name(f".{plan.output.name}.{os.getpid()}.part")
    try:
        try:
            part.write_bytes(data)
            if plan.main:
                shutil.copymode(plan.main, part)
            part.replace(plan.output)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"Cannot write {plan.output}: {error.strerror}.") from None


def _take_back(plan: Plan, before: bytes | None) -> None:
    with suppress(OSError, ToolError):
        if before is None:
            plan.output.unlink(missing_ok=True)
        else:
            _write(plan, before)
