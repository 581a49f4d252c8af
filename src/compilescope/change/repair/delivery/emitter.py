"""Writes the script of `--script`, runs it by itself in fresh processes, and removes it again
unless it does what it claims.

It must end and print as the original does, lose no more than was verified, and its compiled regions
must give what the original's give, on the same inputs that fixes are verified on.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.outputs import check_output, part_of, write_output
from compilescope.base.processes.cleaner import FileChange, journal
from compilescope.change.fixes.patch import Allowance
from compilescope.change.repair.delivery.script import (
    MARK,
    FixedScript,
    ScriptRecipe,
    is_ours,
    is_untouched,
    make_script,
)
from compilescope.change.repair.search.options import SearchOptions, main_file
from compilescope.change.repair.search.outcome import SearchResult
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.losses import losses_of
from compilescope.change.repair.trials.printed_output import compare_output, differs_in_numbers
from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.value_checks import compare_values
from compilescope.change.repair.trials.version import Changes, Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.instrument.recorder.target import Target
from compilescope.record.fix_search import FixAttempt, FixCheck, FixVerdict, Losses
from compilescope.record.stack import origin_of

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


_LOSSES = {
    "breaks": "graph breaks",
    "recompiles": "recompiles",
    "eager": "eager fallbacks",
    "failures": "failed compilations",
}


_PRINTED = "printed by regions"
"""The check's name in `replay_checks`."""


@dataclass(frozen=True)
class Claim:
    """What is said of a script."""

    version: Version
    """The program with all that the script should carry."""
    losses: Losses | None = None
    """Of that version, where it was verified; None: it has to be run first."""
    allows: frozenset[Allowance] = frozenset()
    whole: bool = True
    """The script carries every change; else it may lose more, but no more than the original."""
    numbers: bool = True
    """Its numbers must be the original's; else they were judged before, and may be others."""


class Proof(msgspec.Struct, frozen=True):
    """How its runs went; in JSON as it stands."""

    verdict: FixVerdict
    reason: str = ""
    """Why it is not verified."""
    found: Losses = Losses()
    """What the script itself loses."""
    claimed: Losses = Losses()
    checks: tuple[FixCheck, ...] = ()
    inputs: tuple[str, ...] = ()
    """The sets of inputs on which its results were compared, in words."""

    def with_checks(self, checks: Iterable[FixCheck]) -> Proof:
        """The same with more that was asked."""
        every = (*self.checks, *checks)
        verdict, reason = _verdict_of(every)
        return msgspec.structs.replace(self, checks=every, verdict=verdict, reason=reason)

    @property
    def holds(self) -> bool:
        """May it be handed out? As verified only if that is its verdict."""
        return self.verdict != "rejected"


def _verdict_of(checks: Sequence[FixCheck]) -> tuple[FixVerdict, str]:
    """And why it is not verified."""
    failed = [check for check in checks if check.verdict == "fail"]
    unknown = [check for check in checks if check.verdict == "unknown"]
    if failed:
        return "rejected", failed[0].words
    return ("unverified", unknown[0].words) if unknown else ("verified", "")


def prove_script(script: Target, original: Target, claim: Claim, options: SearchOptions) -> Proof:
    options.progress("running the fixed script", 0, 0)
    with ExitStack() as opened:
        ours = opened.enter_context(options.workbench(script))
        theirs = opened.enter_context(options.workbench(original))
        return _ScriptTrial(ours, theirs, claim).proof()


class _ScriptTrial:
    """A script under way."""

    def __init__(self, script: Workbench, original: Workbench, claim: Claim) -> None:
        self._script, self._original = script, original
        self._claim = claim
        self._before = TrialBaseline(original)
        self._inputs: tuple[str, ...] = ()

    def proof(self) -> Proof:
        after = self._script.watch(Version())
        claimed = self._claimed()
        counts = losses_of(after.digest, after.operators)
        checks: list[FixCheck] = []
        for check in self._checks(after, counts, claimed):
            checks.append(check)
            if check.verdict == "fail":
                break
        verdict, words = _verdict_of(checks)
        return Proof(verdict, words, counts, claimed, tuple(checks), self._inputs)

    def _claimed(self) -> Losses:
        if self._claim.losses is not None:
            return self._claim.losses
        expected = self._original.watch(self._claim.version)
        return losses_of(expected.digest, expected.operators)

    def _checks(self, after: CapturedRun, counts: Losses, claimed: Losses) -> Iterator[FixCheck]:
        yield self._exit(after)
        yield self._printed(after)
        yield from self._losses(counts, claimed)
        if self._claim.numbers and not self._before.unusable:
            yield from self._values()

    def _exit(self, after: CapturedRun) -> FixCheck:
        wanted = self._before.exit_status
        if after.timed_out:
            return FixCheck("exit", "fail", "it timed out")
        if after.exit_status != wanted:
            last = after.stderr.decode(errors="replace").strip().splitlines()[-1:]
            said = f" ({last[0].strip()[:160]})" if last else ""
            words = f"it exits with status {after.exit_status}{said} instead of {wanted}"
            return FixCheck("exit", "fail", words)
        return FixCheck("exit", "pass", f"status {wanted}")

    def _printed(self, after: CapturedRun) -> FixCheck:
        """A program may print its own name."""
        before, allows = self._before, self._claim.allows
        names = self._script.target.label.encode(), self._original.target.label.encode()
        told = before.stdout, after.stdout.replace(names[0], names[1])
        printed = compare_output(*told, allows)
        if printed.verdict == "fail":
            as_it_is = compare_output(before.stdout, after.stdout, allows)
            printed = as_it_is if as_it_is.verdict != "fail" else printed
        if not self._claim.numbers and differs_in_numbers(*told):
            return FixCheck("output", "pass", "the same but for numbers")
        if printed.verdict == "fail":
            # Numbers may move as far as compiling moves them, and from run to run; times too.
            others = [before.probed.stdout, before.captured_again.stdout]
            printed = compare_output(*told, allows, others)
        if printed.verdict == "pass":
            return FixCheck("output", "pass", printed.words)
        words = f"it prints something different: {printed.words}"
        return FixCheck("output", printed.verdict, words)

    def _losses(self, counts: Losses, claimed: Losses) -> Iterator[FixCheck]:
        original = self._before.captured
        were = losses_of(original.digest, original.operators)
        for name, label in _LOSSES.items():
            has, said = getattr(counts, name), getattr(claimed, name)
            words = f"it has {has} {label} and the fixed program has {said}"
            if has <= said:
                yield FixCheck(name, "pass", f"{has}, as in the verified version")
            elif self._claim.whole or has > getattr(were, name):
                yield FixCheck(name, "fail", words)
            else:
                yield FixCheck(name, "unknown", words)

    def _values(self) -> Iterator[FixCheck]:
        found = compare_values(self._script, self._before, Version(), Changes(), self._claim.allows)
        self._inputs = tuple(dict.fromkeys(found.inputs))
        for check in found.checks:
            if check.name == _PRINTED and check.verdict == "fail":
                # Python shows a warning once a place, and the script's places are others.
                yield FixCheck(check.name, "unknown", check.words)
                continue
            unsteady = self._before.unsteady_values if check.verdict == "fail" else ""
            yield FixCheck(check.name, "unknown", unsteady) if unsteady else check


# What `logs --script` hands out: the script, what is in it, and how it went by itself.


@dataclass(frozen=True)
class LoggedScript:
    """The script for a log, and what it does."""

    path: str | None = None
    """None: there was nothing to put into a script, or it did not hold."""
    command: str = ""
    done: tuple[str, ...] = ()
    """In the script and verified."""
    unverified: tuple[str, ...] = ()
    """In the script and unverified."""
    left: tuple[str, ...] = ()
    """To do by hand."""
    where: str = ""
    """Where `done` was verified."""
    reason: str = ""
    """Why nothing, or not all of it, could be verified; why there is no script."""
    proof: Proof | None = None
    """How the script went by itself; None where it cannot run here."""
    attempts: tuple[FixAttempt, ...] = ()
    """What is in the script, each with its verdict and the event of the log that it is for."""

    @property
    def verified(self) -> bool:
        """All of it, and the script by itself."""
        ran = self.proof is not None and self.proof.verdict == "verified"
        return self.path is not None and ran and not self.unverified
