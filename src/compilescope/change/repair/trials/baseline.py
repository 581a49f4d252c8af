"""The original program that all versions of a round are compared with.

It is run once for each question, when the first version needs the answer, and then shared.
"""

from __future__ import annotations

import functools
from collections.abc import Collection

import msgspec

from compilescope.base.processes.outcome import last_words
from compilescope.change.fixes.values.graph_values import ValueFacts
from compilescope.change.repair.trials.losses import has_symbolic_sizes, losses_of, same_losses
from compilescope.change.repair.trials.printed_output import compare_steadiness
from compilescope.change.repair.trials.recorded_runs import CapturedRun, ComparedValues, ReplayedRun
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.record.fix_search import Losses

_LOSSES = ("gone", "breaks", "recompiles", "guards", "eager", "failures", "operators", "causes")
_SEEN_IN = {"exit": "exit", "output": "output"} | dict.fromkeys((*_LOSSES, "share"), "losses")
"""What of a run under capture a check is about; all other checks are of replays."""
_INDUCTOR = "inductor_cumulative_compile_time_us"


class TrialBaseline:
    """The original of a round. Whatever is not asked for is not run."""

    def __init__(
        self,
        bench: Workbench,
        version: Version | None = None,
        captured: CapturedRun | None = None,
        values: TrialBaseline | None = None,
        *,
        light: bool = False,
        numbers: Collection[float] = (),
    ) -> None:
        """`captured`: a run of this version that was seen before. `values`: one that does the same,
        whose replays serve for this one's too. `light`: runs and replays are without Inductor,
        those of this one and of what is held against it. `numbers`: of the change, for inputs."""
        self.bench = bench
        self.version = version or Version()
        self._captured = captured
        self._surveying: Collection[tuple[str, int]] = ()
        self.values = values or self
        self.light = light
        self._numbers = numbers

    @functools.cached_property
    def captured(self) -> CapturedRun:
        return self._captured or self.bench.watch(self.version, light=self.light)

    @functools.cached_property
    def probed(self) -> ReplayedRun:
        """Its regions, replayed eagerly and in float64."""
        return self.bench.probe(
            self.version,
            compiled=False,
            focus=self.places,
            surveying=self._surveying,
            sizes=self.has_sizes,
            numbers=self._numbers,
        )

    def survey(self, lines: Collection[tuple[str, int]]) -> ValueFacts:
        """What variables hold around these lines. Nearly every search needs the replays too: where
        they are still to be made, one run does for both."""
        other = self.values
        if other.version == self.version and "probed" not in vars(other):
            other._surveying = lines
            probed = other.probed
            if probed.exit_status >= 0 and not probed.timed_out:
                return probed.surveyed
        return self.bench.survey(self.version, lines)

    def compiled(self, *, light: bool) -> ReplayedRun:
        """Its regions, replayed as they are compiled: asked for where the patched ones differ."""
        return self.bench.probe(self.version, compiled=True, like=self.probed, light=light)

    @functools.cached_property
    def captured_again(self) -> CapturedRun:
        return self.bench.watch(self.version, again=True, light=self.light)

    @functools.cached_property
    def probed_again(self) -> ReplayedRun:
        return self.bench.probe(self.version, compiled=False, like=self.probed)

    @property
    def counts(self) -> Losses:
        return losses_of(self.captured.digest, self.captured.operators, distinct=True)

    def loses_as(self, other: CapturedRun) -> bool:
        """The same causes, and the same end?"""
        seen = self.captured
        ended = (seen.exit_status, seen.timed_out) == (other.exit_status, other.timed_out)
        return ended and same_losses(seen.digest, other.digest)

    @property
    def places(self) -> list[tuple[str, int]]:
        """The lines at which something was lost: fixes will change what is around them."""
        digest = self.captured.digest
        found: list[tuple[str | None, int | None]] = []
        found += [(site.file, site.line) for site in digest.sites]
        found += [(failure.file, failure.line) for failure in digest.failures]
        for frame in digest.recompiles:
            found += [(cause.file, cause.line) for cause in frame.causes]
            found.append((frame.file, frame.line))
        return list(dict.fromkeys((file, line) for file, line in found if file and line))

    @property
    def has_sizes(self) -> bool:
        """Does the program use several sizes of a tensor, or ask for dynamic shapes?"""
        return has_symbolic_sizes(self.captured.run) or any(
            "size" in cause.kind.lower() or "size" in cause.subject
            for frame in self.captured.digest.recompiles
            for cause in frame.causes
        )

    @property
    def calls_again(self) -> bool:
        """Is any region called more than once? Else there is no warm call to time."""
        return any(len(trail) > 1 for trail in self.probed.record.get("trails", {}).values())

    @property
    def failed_to_compile(self) -> bool:
        """Did it end early only because it could not be compiled?"""
        return self.captured.exit_status != 0 and bool(self.captured.digest.failures)

    @functools.cached_property
    def stdout(self) -> bytes:
        return self.probed.stdout if self.failed_to_compile else self.captured.stdout

    @functools.cached_property
    def exit_status(self) -> int:
        return self.probed.exit_status if self.failed_to_compile else self.captured.exit_status

    @functools.cached_property
    def unusable(self) -> str:
        """Why nothing can be held against it; empty where something can."""
        seen = self.captured
        if seen.timed_out:
            return f"the program did not finish within {self.bench.limit_s:g} s"
        if seen.exit_status < 0:
            return f"the program itself is killed by signal {-seen.exit_status}"
        if seen.exit_status and not self.failed_to_compile:
            return f"the program itself ends with status {seen.exit_status}{_last(seen.stderr)}"
        return ""

    def unsteady(self, check: str) -> str:
        """How it differs from itself in what a check is about; empty where it does not. Only what
        the original never does itself counts against a version."""
        seen_in = _SEEN_IN.get(check)
        return self._run_differences[seen_in] if seen_in else self.values.unsteady_values

    @functools.cached_property
    def _run_differences(self) -> dict[str, str]:
        # With Inductor it has run already.
        if self.light and self.version == self.values.version:
            found = self._differences(self.values.captured)
            if not any(found.values()):
                return found
        return self._differences(self.captured_again)

    def _differences(self, again: CapturedRun) -> dict[str, str]:
        found = dict.fromkeys(("exit", "losses", "output"), "")
        if again.exit_status != self.captured.exit_status or again.timed_out:
            found["exit"] = "the program does not always end the same way"
        if not same_losses(self.captured.digest, again.digest):
            words = "the program does not always break or recompile at the same lines"
            found["losses"] = words
        printed = compare_steadiness(self.captured.stdout, again.stdout)
        if printed.verdict != "pass":
            words = f"the program prints something different each time: {printed.words}"
            found["output"] = words
        return found

    @functools.cached_property
    def unsteady_values(self) -> str:
        """How its replays differ; empty where they do not."""
        asked = {"first": self.probed.told, "again": self.probed_again.told}
        return str(self.bench.ask("judge_itself", asked))

    @property
    def not_compared(self) -> list[str]:
        """What no replay shows of it, in sentences."""
        if not self.bench.launched:
            return []
        found = ["Values were compared on rank 0."] if self.probed.calls else []
        return found + [
            f"`{name}` works together with other ranks, so no single one can run it again: of its "
            "results only the size was compared, and what the program prints."
            for name in self.probed.collective
        ]

    @functools.cached_property
    def replayable(self) -> ComparedValues:
        """What speaks against holding anything against its replays."""
        found = ComparedValues()
        probed = self.probed
        if probed.timed_out:
            found.unknown(f"replaying the original took more than {self.bench.limit_s:g} s")
        elif probed.exit_status != self.exit_status:
            found.unknown(
                f"the program ends differently when it runs eagerly{_last(probed.stderr)}"
            )
        elif not probed.calls and not probed.collective:
            found.unknown("no compiled region is called")
        else:
            answer = self.bench.ask("judge_original", {"original": probed.told})
            found.add(msgspec.convert(answer, ComparedValues))
            left_out = probed.record["left_out"]
            found.notes += [f"not all regions were replayed: {why}" for why in left_out]
        return found


_WORTH = 0.5
"""Of a run's time that Inductor took. Chosen: one light run more then spares as much in the first
trial already."""


def without_inductor(original: TrialBaseline) -> TrialBaseline:
    """The same for trials, without the part of compiling that decides nothing of what is counted;
    as it is, where that part is small, or counts differ without it. The end is proven with
    Inductor: what is lost, what is printed, and the values."""
    first = original.captured
    spent = first.digest.phases_seconds.get(_INDUCTOR, 0.0)
    if first.exit_status or spent < _WORTH * first.seconds:
        return original
    light = TrialBaseline(original.bench, original.version, values=original, light=True)
    return light if light.counts == original.counts and light.loses_as(first) else original


def _last(stderr: bytes) -> str:
    said = last_words(stderr)
    return f" ({said[:120]})" if said else ""
