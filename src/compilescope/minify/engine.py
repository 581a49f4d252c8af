"""The reducer: makes a candidate smaller, pass by pass, for as long as it stays interesting.

Knows nothing of graphs or of source. Every answer is kept by the candidate's text, and passes are
deterministic: with the answers of an interrupted reduction the same steps are gone again without a
judge. The result does not depend on `jobs`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from compilescope.errors import ToolError
from compilescope.minify.judgements import Judgements, Outcome
from compilescope.minify.speculation import Bench, Speculation
from compilescope.processes.deadline import Deadline, OutOfTime, clock

__all__ = [
    "Candidate",
    "NotInteresting",
    "Outcome",
    "Pass",
    "Reduction",
    "ReductionLimits",
    "ReductionProgress",
    "reduce",
]


class Candidate(Protocol):
    """Something to make smaller. Two with the same text are the same."""

    def size(self) -> tuple[int, ...]:
        """Smaller is better. A total order: its last part breaks ties."""

    def text(self) -> str:
        """What it is: the key of the answer about it. Made only when it is asked for."""


C = TypeVar("C", bound=Candidate)
Judge = Callable[[C], Outcome]
"""Called from several threads where jobs > 1."""


@dataclass(frozen=True)
class Pass(Generic[C]):
    """One way to make a candidate smaller.

    `propose(present)` yields smaller candidates, `taken = yield candidate`; a taken one is the
    present one from there on. It must be deterministic: it may be played again from its start.
    """

    id: str
    order: int
    """Its hundreds are the stage: those of an earlier stage find nothing more before it begins."""
    propose: Callable[[C], Generator[C, bool, None]]

    @property
    def stage(self) -> int:
        return self.order // 100


class NotInteresting(ToolError):
    """What the reduction should start from does not show what is to be kept."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(_NOT_SHOWN[outcome])
        self.outcome = outcome


_NOT_SHOWN: dict[Outcome, str] = {
    "kept": "",
    "lost": "There is nothing to minify: the whole program does not show what must be kept.",
    "invalid": "There is nothing to minify: the whole program is not valid.",
    "timeout": "There is nothing to minify: the whole program exceeded the time limit.",
    "crashed": "There is nothing to minify: the whole program crashed.",
}


@dataclass(frozen=True)
class ReductionLimits:
    """Where to stop before the fixed point."""

    time_s: float | None = None
    calls: int | None = None
    deadline: Deadline = field(default_factory=Deadline)


@dataclass(frozen=True)
class ReductionProgress:
    """Where a reduction stands."""

    size: tuple[int, ...]
    start_size: tuple[int, ...]
    calls: int
    round: int
    doing: str
    """Id of the pass that is at work."""


Stop = Literal["", "interrupt", "time", "calls"]


@dataclass(frozen=True)
class Reduction(Generic[C]):
    """What came of it."""

    best: C
    start_size: tuple[int, ...]
    calls: int
    """How often the judge was asked, speculation included."""
    rounds: int
    stopped: Stop = ""
    """Why it ended before the fixed point; empty if it did not."""
    reused: int = 0
    """Answers that were there already: seen before in this reduction, or in the one resumed."""

    @property
    def interrupted(self) -> bool:
        return self.stopped == "interrupt"


def reduce(
    start: C,
    passes: Sequence[Pass[C]],
    judge: Judge[C],
    *,
    jobs: int = 1,
    state: Path | None = None,
    purpose: str = "",
    limits: ReductionLimits | None = None,
    progress: Callable[[ReductionProgress], None] | None = None,
) -> Reduction[C]:
    """The smallest candidate that the passes reach from `start`.

    With `state`, answers are kept in that file and taken from it where it is there; `purpose` names
    what the judge looks for, so that answers to another question are refused. Ctrl-C ends it with
    the best so far, and so does a judge's `OutOfTime`, except on `start` itself. Raises
    NotInteresting where `start` is not kept.
    """
    answers = Judgements.open(state, start=start.text(), purpose=purpose)
    reducer = _Reducer(start, answers, limits or ReductionLimits(), progress)
    with Bench(judge, answers, jobs) as bench:
        try:
            reducer.check_start(bench)
            reducer.go(passes, bench)
        except KeyboardInterrupt:
            reducer.stopped = "interrupt"
        except OutOfTime:
            if not reducer.is_checked:
                raise
            reducer.stopped = "time"
    answers.save(reducer.best.text())
    return reducer.result()


class _Reducer(Generic[C]):
    """One reduction under way."""

    def __init__(
        self,
        start: C,
        answers: Judgements,
        limits: ReductionLimits,
        progress: Callable[[ReductionProgress], None] | None,
    ) -> None:
        self.best = start
        self.stopped: Stop = ""
        self.is_checked = False
        """The start is known to be interesting."""
        self._start_size = start.size()
        self._answers = answers
        self._limits = limits
        self._progress = progress
        self._started = clock()
        self._rounds = 0

    def check_start(self, bench: Bench[C]) -> None:
        outcome = bench.ask(self.best).result()
        if outcome != "kept":
            raise NotInteresting(outcome)
        self.is_checked = True
        self._tell("")

    def go(self, passes: Sequence[Pass[C]], bench: Bench[C]) -> None:
        """Round after round, until no pass finds anything more.

        A round is of one stage: the first in which there is something left to try.
        """
        in_vain: dict[str, str] = {}

        def is_open(each: Pass[C]) -> bool:
            return in_vain.get(each.id) != self.best.text()

        ordered = sorted(passes, key=lambda each: (each.order, each.id))
        while not self.stopped:
            stage = next((each.stage for each in ordered if is_open(each)), None)
            if stage is None:
                return
            self._rounds += 1
            for each in ordered:
                if each.stage == stage and is_open(each) and not self._run(each, bench):
                    in_vain[each.id] = self.best.text()
                if self.stopped:
                    return

    def _run(self, each: Pass[C], bench: Bench[C]) -> bool:
        """Did it find anything?"""
        before = self.best
        proposals = Speculation(each.propose, self.best, bench)
        while (proposal := proposals.next(lambda c: c.size() < self.best.size())) is not None:
            self.stopped = self._limit_reached()
            if self.stopped:
                break
            kept = proposal.outcome() == "kept"
            if kept:
                self.best = proposal.candidate
            proposals.answer(kept)
            self._answers.save_now_and_then(self.best.text)
            self._tell(each.id)
        return self.best is not before

    def _limit_reached(self) -> Stop:
        limits = self._limits
        if limits.time_s is not None and clock() - self._started >= limits.time_s:
            return "time"
        if limits.deadline.is_over:
            return "time"
        if limits.calls is not None and self._answers.calls >= limits.calls:
            return "calls"
        return ""

    def _tell(self, doing: str) -> None:
        if self._progress is not None:
            calls = self._answers.calls
            self._progress(
                ReductionProgress(self.best.size(), self._start_size, calls, self._rounds, doing)
            )

    def result(self) -> Reduction[C]:
        return Reduction(
            best=self.best,
            start_size=self._start_size,
            calls=self._answers.calls,
            rounds=self._rounds,
            stopped=self.stopped,
            reused=self._answers.reused,
        )
