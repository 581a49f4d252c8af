"""What a program with two planted causes takes without each of them: the truth for what its profile
says.

A process for each version, without a profiler. They are made ready together, and then take turns:
one window of steps each, round by round, while the others wait.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import IO, Any, NamedTuple

from storms import median_interval

ROUNDS = 9
"""Chosen: an interval that leaves out the shortest and the longest."""
_NEAR = 0.01
"""Of the step. Chosen: two processes of one program differ by as much."""


class Saving(NamedTuple):
    """By which the step is shorter without a cause, in milliseconds."""

    cause: str
    ms: float
    low: float
    high: float

    def ends(self) -> dict[str, float]:
        return {"ms": self.ms, "low": self.low, "high": self.high}


class Truth(NamedTuple):
    """Measured; without savings where that failed, with the reason."""

    step_ms: float
    savings: tuple[Saving, ...]
    """The largest first."""
    reason: str = ""

    @property
    def is_tie(self) -> bool:
        """Nobody can say which of the two saves more."""
        first, second = self.savings
        return second.high >= first.low or first.ms - second.ms < _NEAR * self.step_ms


class Version(NamedTuple):
    """A running program that lacks one of its causes, or none."""

    file: Path
    without: str
    process: subprocess.Popen[str]
    errors: IO[str]

    def answer(self, word: str) -> list[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return line.split()
        self.errors.seek(0)
        said = self.errors.read().strip().splitlines()[-1:]
        raise EOFError(" ".join([f"without {self.without or 'nothing'} it ended:", *said]))

    def window_ms(self) -> float:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # What it said last tells more.
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        return float(self.answer("window")[1])


@contextmanager
def versions(
    programs: Sequence[tuple[Path, tuple[str, ...]]], limit_s: float
) -> Iterator[list[Version]]:
    """All versions of some programs, which get ready at the same time. After so many seconds they
    are ended."""
    wanted = [(file, without) for file, causes in programs for without in ("", *causes)]
    threads = max((os.cpu_count() or 1) // max(len(wanted), 1), 1)
    settings = {"TIMED": "1", "TORCHINDUCTOR_COMPILE_THREADS": str(threads)}
    with ExitStack() as stack:
        started = []
        for file, without in wanted:
            errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            process = subprocess.Popen(
                [sys.executable, str(file)],
                env={**os.environ, **settings, "WITHOUT": without},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            stack.callback(_end, process)
            started.append(Version(file, without, process, errors))
        timer = threading.Timer(limit_s, _kill, (started,))
        timer.daemon = True
        timer.start()
        stack.callback(timer.cancel)
        for version in started:
            with suppress(EOFError):  # Told when its turn comes.
                version.answer("ready")
        yield started


def _kill(started: Sequence[Version]) -> None:
    for version in started:
        version.process.kill()


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def measure(own: Sequence[Version], rounds: int = ROUNDS) -> Truth:
    """In turns, each round in another order. The first of them has nothing left out."""
    try:
        times = _taken_turns(own, rounds)
    except EOFError as error:
        return Truth(0.0, (), f"not timed: {error}")
    whole = times[own[0].without]
    savings = []
    for version in own[1:]:
        less = times[version.without]
        saved = [before - after for before, after in zip(whole, less, strict=True)]
        savings.append(Saving(version.without, median(saved), *median_interval(saved)))
    return Truth(median(whole), tuple(sorted(savings, key=lambda saving: -saving.ms)))


def _taken_turns(own: Sequence[Version], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {version.without: [] for version in own}
    for version in own:
        version.window_ms()  # After the wait for the others.
    for turn in range(rounds):
        at = turn % len(own)
        for version in (*own[at:], *own[:at]):
            times[version.without].append(version.window_ms())
    return times


def as_json(truth: Truth) -> dict[str, Any]:
    return {
        "step_ms": truth.step_ms,
        "savings": {saving.cause: saving.ends() for saving in truth.savings},
        "tie": bool(truth.savings) and truth.is_tie,
        "reason": truth.reason,
    }


def truth_of(kept: dict[str, Any]) -> Truth:
    """As `as_json` has it."""
    savings = (Saving(cause, **ends) for cause, ends in kept["savings"].items())
    return Truth(kept["step_ms"], tuple(savings), kept["reason"])
