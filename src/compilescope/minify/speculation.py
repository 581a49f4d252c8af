"""The proposals of one pass, judged ahead of time where there are several jobs.

Most proposals are refused. So while one is judged, the pass is told "no" for it and asked for the
next ones; if it is taken after all, the pass is played again from its start up to there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

from compilescope.minify.judgements import Judgements, Outcome

C = TypeVar("C", bound=Any)


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
        self, propose: Callable[[C], Generator[C, bool, None]], start: C, bench: Bench[C]
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
