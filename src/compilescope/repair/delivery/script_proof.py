"""Does an emitted script do what the proven version does? Both are run and compared."""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.model.fix_search import Losses
from compilescope.recorder.target import Target
from compilescope.repair.search.options import SearchOptions
from compilescope.repair.trials.losses import losses_of
from compilescope.repair.trials.printed_output import compare_output
from compilescope.repair.trials.version import Version
from compilescope.repair.trials.watched import CapturedRun
from compilescope.repair.trials.workbench import Workbench

_LOSSES = {
    "breaks": "graph breaks",
    "recompiles": "recompiles",
    "eager": "eager fallbacks",
    "failures": "failed compilations",
}


@dataclass(frozen=True)
class Proof:
    """How a run of the script went."""

    holds: bool
    words: str
    """Why it does not hold, or what differs though it does."""
    counts: Losses


def prove_script(
    script: Target, original: Target, version: Version, wishes: SearchOptions, *, whole: bool
) -> Proof:
    """`whole`: the script carries every change, so it must lose just as much as the version does;
    else no more than the program as it is."""
    wishes.progress("running the fixed script", 0, 0)
    after = _watched(script, Version(), wishes)
    expected = _watched(original, version, wishes)
    counts = losses_of(after.digest, after.operators, distinct=True)
    problem = _ending(after, expected) or _printed(after, expected, script, original)
    if problem:
        return Proof(False, problem, counts)
    wanted = losses_of(expected.digest, expected.operators, distinct=True)
    words = _more(counts, wanted, "the fixed program")
    if words and not whole:
        plain = _watched(original, Version(), wishes)
        before = losses_of(plain.digest, plain.operators, distinct=True)
        worse = _more(counts, before, "the original")
        return Proof(not worse, worse or words, counts)
    return Proof(not words, words, counts)


def _watched(target: Target, version: Version, wishes: SearchOptions) -> CapturedRun:
    with Workbench(
        target,
        compile_names=wishes.compile_names,
        backend=wishes.backend,
        limit_s=wishes.limit_s,
        stdin=wishes.stdin,
        seed=wishes.seed,
        deadline=wishes.deadline,
        plain=wishes.plain,
    ) as bench:
        return bench.watch(version)


def _ending(after: CapturedRun, expected: CapturedRun) -> str:
    if after.timed_out:
        return "it timed out"
    if after.exit_status != expected.exit_status:
        last = after.stderr.decode(errors="replace").strip().splitlines()[-1:]
        said = f" ({last[0].strip()[:160]})" if last else ""
        return f"it exits with status {after.exit_status}{said} instead of {expected.exit_status}"
    return ""


def _printed(after: CapturedRun, expected: CapturedRun, script: Target, original: Target) -> str:
    """A program may print its own name."""
    named = after.stdout.replace(script.label.encode(), original.label.encode())
    printed = compare_output(expected.stdout, named)
    if printed.verdict != "pass":
        printed = compare_output(expected.stdout, after.stdout)
    return "" if printed.verdict == "pass" else f"it prints something different: {printed.words}"


def _more(counts: Losses, wanted: Losses, who: str) -> str:
    for name, words in _LOSSES.items():
        has, allowed = getattr(counts, name), getattr(wanted, name)
        if has > allowed:
            return f"it has {has} {words} and {who} has {allowed}"
    return ""
