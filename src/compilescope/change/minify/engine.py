"""The reducer: makes a candidate smaller, pass by pass, for as long as it stays interesting.

Knows nothing of graphs or of source. Every answer is kept by the candidate's text, and passes are
deterministic: with the answers of an interrupted reduction the same steps are gone again without a
judge. The result does not depend on `jobs`.

Most proposals are refused. So while one is judged, the pass is told "no" for it and asked for the
next ones; if it is taken after all, the pass is played again from its start up to there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import Deadline, OutOfTime, clock
from compilescope.change.minify.judgements import Judgements, Outcome

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
        self._tell()

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
            self._tell()
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

    def _tell(self) -> None:
        if self._progress is not None:
            calls = self._answers.calls
            self._progress(ReductionProgress(self.best.size(), self._start_size, calls))

    def result(self) -> Reduction[C]:
        return Reduction(
            best=self.best,
            start_size=self._start_size,
            calls=self._answers.calls,
            rounds=self._rounds,
            stopped=self.stopped,
            reused=self._answers.reused,
        )


class Pending(Protocol):
    """An answer that may still be under way."""

    def result(self) -> Outcome: ...


class Bench(Generic[C]):
    """Where candidates are judged: one after the other, or `jobs` at a time."""

    def __init__(self, judge: Callable[[C], Outcome], answers: Judgements, jobs: int) -> None:
        self._judge = judge
        self._answers = answers
        self.jobs = max(1, jobs)
        self._pool = ThreadPoolExecutor(self.jobs) if self.jobs > 1 else None
        self._under_way: dict[str, Future[Outcome]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Bench[C]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            # Nobody waits for answers that no longer matter; who made the judge ends its processes.
            self._pool.shutdown(wait=False, cancel_futures=True)

    def ask(self, candidate: C) -> Pending:
        text = candidate.text()
        # Both under the lock: an answer that arrives in between would be asked for again.
        with self._lock:
            known = self._answers.get(text)
            if known is not None:
                return _KnownAnswer(known)
            if self._pool is None:
                return _Waiting(lambda: self._answer(candidate, text))
            future = self._under_way.get(text)
            if future is None:
                future = self._pool.submit(self._answer, candidate, text)
                self._under_way[text] = future
        return future

    def _answer(self, candidate: C, text: str) -> Outcome:
        try:
            outcome = self._judge(candidate)
            self._answers.put(text, outcome)
        finally:
            with self._lock:
                self._under_way.pop(text, None)
        return outcome


class _KnownAnswer:
    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def result(self) -> Outcome:
        return self._outcome


class _Waiting:
    """Judged when its answer is asked for."""

    def __init__(self, answer: Callable[[], Outcome]) -> None:
        self._answer = answer

    def result(self) -> Outcome:
        return self._answer()


class Proposal(Generic[C]):
    """One candidate of a pass."""

    def __init__(self, candidate: C, pending: Pending) -> None:
        self.candidate = candidate
        self._pending = pending

    def outcome(self) -> Outcome:
        return self._pending.result()


class Speculation(Generic[C]):
    """Walks through one pass: `next`, then `answer`, until `next` has nothing more."""

    def __init__(
        self,
        propose: Callable[[C], Generator[C, bool, None]],
        start: C,
        bench: Bench[C],
    ) -> None:
        self._propose = propose
        self._start = start
        self._bench = bench
        self._given: list[bool] = []
        """Every answer so far: with it the pass can be played again."""
        self._ahead: deque[Proposal[C]] = deque()
        self._generator = propose(start)
        self._reply: bool | None = None
        """What the generator is to be told next; None at its start."""
        self._exhausted = False

    def next(self, smaller: Callable[[C], bool]) -> Proposal[C] | None:
        """The proposal to answer now. One that is not smaller is refused without a judge."""
        while not self._exhausted and len(self._ahead) < self._bench.jobs:
            candidate = self._step()
            if candidate is None:
                break
            self._reply = False
            pending = self._bench.ask(candidate) if smaller(candidate) else _KnownAnswer("lost")
            self._ahead.append(Proposal(candidate, pending))
        return self._ahead[0] if self._ahead else None

    def answer(self, taken: bool) -> None:
        self._ahead.popleft()
        self._given.append(taken)
        if not taken:
            return
        if self._ahead or self._exhausted:
            self._play_again()
        else:
            self._reply = True

    def _step(self) -> C | None:
        try:
            if self._reply is None:
                return next(self._generator)
            return self._generator.send(self._reply)
        except StopIteration:
            self._exhausted = True
            return None

    def _play_again(self) -> None:
        """Up to the last answer given, which the generator is told next."""
        self._generator.close()
        self._ahead.clear()
        self._exhausted = False
        self._generator = self._propose(self._start)
        self._reply = None
        for reply in self._given:
            self._step()
            self._reply = reply
