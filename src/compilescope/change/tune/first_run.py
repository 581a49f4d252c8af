"""The first run of a program: what it compiles, where its step is, and what the step has.

Where the cores allow it, the rounds of all loops that may be the step are counted in a second
process at the same time. What was compiled stays in a folder, which later versions begin with.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import OutOfTime
from compilescope.change.repair.search.attempts import error_words
from compilescope.change.repair.search.options import main_file
from compilescope.change.repair.trials.recorded_runs import CapturedRun
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.change.tune.candidate import StepFacts
from compilescope.change.tune.options import TuneOptions
from compilescope.change.tune.step_place import (
    ENOUGH,
    MARK,
    Laps,
    StepPlace,
    choose,
    likely_steps,
    marked,
    possible_steps,
)
from compilescope.change.tune.step_process import StepFailed, StepProcess, compiler_caches
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.findings.compile_ids import called_regions
from compilescope.knowledge.source.refusals import Refused

_COUNTING_S = 5.0
"""After the last compilation, steps are counted for so long. Chosen: an inner loop is told from an
outer one by then."""


@dataclass(frozen=True)
class FirstRun:
    """What is known before anything is tried."""

    captured: CapturedRun
    place: StepPlace
    facts: StepFacts
    steps: int | None
    """How many there are; None where no end was seen."""
    caches: Path
    """What its compilers kept."""


@dataclass
class _RoundCount:
    """A process that counts the rounds of loops."""

    places: list[StepPlace]
    process: StepProcess
    said: dict[str, Any] | None = None

    def result(self) -> dict[str, Any]:
        if self.said is None:
            self.said = self.process.hear("counted")
        if self.said is None:
            raise StepFailed("the program ended without it")
        if self.said["ended"]:
            self.process.check_end()
        return self.said


@dataclass(frozen=True)
class FirstRunner:
    """Runs it. Raises `ToolError` where the program cannot be run, or has no step."""

    target: Target
    options: TuneOptions
    bench: Workbench
    caches: Path

    def run(self) -> FirstRun:
        self.options.progress("running the program", 0, 0)
        with self._guess() as guess:
            captured = self._captured()
            self.options.progress("finding the step", 0, 0)
            place, steps, facts = self._found(captured, guess)
        self.options.tell(f"the step is {place.words} {self.named(place)}")
        return FirstRun(captured, place, facts, steps, self.caches)

    def named(self, place: StepPlace) -> str:
        root = self.target.root
        inside = place.file.startswith(root + os.sep)
        return f"{os.path.relpath(place.file, root) if inside else place.file}:{place.line}"

    def _captured(self) -> CapturedRun:
        try:
            first = self.bench.watch(Version(), environment=compiler_caches(self.caches))
        except OutOfTime:
            raise ToolError(
                "The time budget ran out before the program had run once.",
                hint="Raise --budget, or use a shorter run of the program.",
            ) from None
        if first.timed_out:
            raise ToolError(
                f"The program did not finish within {self.options.limit_s:g} s.",
                hint="Raise --limit, or use a shorter run of the program.",
            )
        if first.exit_status:
            raise ToolError(f"The program fails: {error_words(first)}.")
        if not first.digest.graphs:
            raise ToolError(
                "The program compiled nothing, so there is nothing to tune.",
                hint="If it never calls torch.compile, --compile-all compiles its outermost "
                "modules.",
            )
        return first

    @contextlib.contextmanager
    def _guess(self) -> Iterator[_RoundCount | None]:
        """Which loops lead to compiled code is known after the run; all that may be are counted
        meanwhile."""
        places: list[StepPlace] = []
        if self.options.at_once > 1 and self.options.step is None:
            places = likely_steps(main_file(self.target))
        try:
            guess = self._start(places) if places else None
        except (Refused, OutOfTime):
            guess = None
        with guess.process if guess is not None else contextlib.nullcontext():
            yield guess

    def _found(
        self, captured: CapturedRun, guess: _RoundCount | None
    ) -> tuple[StepPlace, int | None, StepFacts]:
        """The step, how often it is passed, and what it has."""
        best: tuple[StepPlace, Laps] | None = None
        self._check_calls(captured)
        for chains in possible_steps(captured.run, Version(), self.options.step):
            places = list(dict.fromkeys(place for chain in chains for place in chain))
            counted = self._counted(places, guess)
            rounds = {
                place: Laps(*each) for place, each in zip(places, counted["rounds"], strict=True)
            }
            place = choose(chains, rounds)
            if rounds[place].passed >= ENOUGH or not counted["ended"]:
                facts = msgspec.convert(counted["facts"][places.index(place)], StepFacts)
                step = msgspec.structs.replace(place, way=rounds[place].way)
                return step, rounds[place].passed if counted["ended"] else None, facts
            if best is None or rounds[place].passed > best[1].passed:
                best = place, rounds[place]
        if best is None:
            raise ToolError(
                "Nothing in the program leads to its compiled code again and again, so it has no "
                "step to measure.",
                hint="Run it in a loop of some dozens of steps, or name one: --step FILE:FUNCTION.",
            )
        if not best[1].passed and self.bench.launched:
            raise ToolError(f"Not every rank runs the step at {self.named(best[0])}.")
        if not best[1].passed:
            raise ToolError(
                f"The step at {self.named(best[0])} runs in a process that the program starts.",
                hint="Ranks are tuned where torchrun starts them: compilescope tune --torchrun "
                "--nproc-per-node 2 SCRIPT.",
            )
        raise _too_few(f"The step at {self.named(best[0])} ran", best[1].passed)

    def _check_calls(self, captured: CapturedRun) -> None:
        """What was entered too seldom is known from the first run. Compiled code that a break cut
        may have the loop within."""
        calls = max((each.calls for each in called_regions(captured.run)), default=ENOUGH)
        if calls < ENOUGH and not captured.digest.sites:
            raise _too_few("The program's compiled code was called", calls)

    def _counted(self, places: list[StepPlace], guess: _RoundCount | None) -> dict[str, Any]:
        """`rounds` and `facts` are in the order of the places."""
        try:
            if guess is not None and set(places) <= set(guess.places):
                with contextlib.suppress(StepFailed):
                    said = guess.result()
                    numbers = [guess.places.index(place) for place in places]
                    picked = {
                        name: [said[name][number] for number in numbers]
                        for name in ("rounds", "facts")
                    }
                    return {**said, **picked}
            counting = self._start(places)
            with counting.process:
                return counting.result()
        except (StepFailed, Refused) as failure:
            raise ToolError(f"The program's step was not found: {failure}.") from None
        except OutOfTime:
            raise ToolError("The time budget ran out before the step was found.") from None

    def _start(self, places: list[StepPlace]) -> _RoundCount:
        texts = {}
        for file in {place.file for place in places}:
            text = Version().text_of(file) or ""
            # A mark says its number among all places, so each file is marked for itself.
            numbers = [number for number, each in enumerate(places) if each.file == file]
            texts[file] = _renumbered(marked(text, [places[number] for number in numbers]), numbers)
        given: dict[str, Any] = {"places": len(places), "seconds": _COUNTING_S}
        process = StepProcess(self.bench, Version(texts), "count", self.caches, **given)
        return _RoundCount(places, process)


def _too_few(what: str, count: int) -> ToolError:
    times = "once" if count == 1 else f"{count} times"
    return ToolError(
        f"{what} {times}; to measure it, at least {ENOUGH} are needed.",
        hint="Run the program with more steps.",
    )


def _renumbered(text: str, numbers: list[int]) -> str:
    """Marks of one file say their numbers among the places of all files."""
    for here in reversed(range(len(numbers))):
        text = text.replace(f"{MARK}({here})", f"{MARK}({numbers[here]})")
    return text
