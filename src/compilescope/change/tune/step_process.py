"""Our end of programs that run in turns: starts one, hears it, measures its turns once it has
settled; and versions measured against the original.

They compile one after the other, or some at a time; then every round takes one turn of each, in an
order that rotates, so that what disturbs the machine disturbs all of them alike.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

from compilescope.base.processes.channel import Channel
from compilescope.base.processes.deadline import OutOfTime, clock
from compilescope.base.processes.worker import Worker
from compilescope.change.repair.trials.child.ranks import why_a_rank_failed
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.knowledge.analysis.intervals import Ratio, ratio

Mode = Literal["count", "exact", "turns"]
_TASK = "compilescope.change.tune.stepper:begin"
_LAST_S = 10.0
"""For a process to leave after its last word. Chosen: as `bench` gives its workers."""


def compiler_caches(folder: Path) -> dict[str, str]:
    """Variables with which Inductor and Triton keep what they compile in this folder."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(folder),
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }


class StepFailed(Exception):
    """A version ended before it had told what it was asked, in a sentence."""


class NotReady(Exception):
    """A version has not told within the time that it was given."""


class StepProcess:
    """A version of the program, in a process that waits at its steps."""

    def __init__(
        self,
        bench: Workbench,
        version: Version,
        mode: Mode,
        caches: Path,
        *,
        eager_random: bool = False,
        **given: Any,
    ) -> None:
        self._bench = bench
        self.begun = clock()
        pair = _, theirs = Channel.pair()
        task = {
            "channel": theirs.fileno(),
            "mode": mode,
            "folder": str(caches),
            "launched": bench.launched,
            **given,
        }
        asked = {"task": {"name": _TASK, "given": task}, "eager_random": eager_random}
        launch = bench.launch(version, asked, compiler_caches(caches))
        self._folder = launch.folder
        with (
            open(launch.folder / "stdin", "rb") as stdin,
            open(launch.folder / "stdout", "wb") as stdout,
        ):
            self._worker = Worker(
                launch.command,
                pair=pair,
                words=launch.folder / "stderr",
                env=launch.environment,
                stdin=stdin,
                stdout=stdout,
            )

    def __enter__(self) -> StepProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._worker.end()

    def ask(self, steps: int) -> None:
        self._worker.send(json.dumps({"steps": steps}).encode())

    def hear(self, *kinds: str, until: float = math.inf) -> dict[str, Any] | None:
        """What it says of one of these kinds; None where the program has come to its end. Raises
        `StepFailed` where it fails or is over its limit, `OutOfTime` where the command is, and
        `NotReady` at `until`, by `clock`."""
        limit_s = self._bench.deadline.limit(self._bench.limit_s)
        end = clock() + limit_s
        while True:
            heard = self._worker.hear(min(end, until) - clock())
            if heard is None:
                self.close()
                if until < end:
                    raise NotReady
                if limit_s < self._bench.limit_s:
                    raise OutOfTime
                raise StepFailed(f"it did not come so far within {limit_s:g} s (see --limit)")
            if not heard:
                self._failed()
            said: dict[str, Any] = json.loads(heard)
            if said["kind"] in kinds:
                return said
            if said["kind"] == "ended":
                self.check_end()
                return None

    def check_end(self) -> None:
        """Of a program that has said its last word. Raises `StepFailed` where it fails."""
        if self._worker.wait(_LAST_S):
            self._failed()

    def _failed(self) -> NoReturn:
        """It has closed its end without a word."""
        self._worker.end(_LAST_S)
        why = ""
        if self._bench.launched:
            why = why_a_rank_failed(self._folder, self._worker.said)
        why = why or self._worker.reason
        raise StepFailed(why.rstrip(".") or "it ended without a step")


@dataclass
class SettledVersion:
    """One process of a version: what it took to settle, and what it has measured since."""

    process: StepProcess
    steady_ms: float
    compile_s: float
    memory_bytes: int | None = None
    steps: int = 0
    """That its turns have taken."""
    over: bool = False
    """The program has come to its end: no more turns."""

    def take_turn(self, steps: int) -> float | None:
        """Milliseconds a step; None where the program ended in it."""
        self.process.ask(steps)
        self.steps += steps
        said = self.process.hear("turn")
        if said is None:
            self.over = True
            return None
        self.memory_bytes = int(said["memory"])
        return float(said["ms"])


def settle(process: StepProcess, until: float = math.inf) -> SettledVersion:
    """Raises `StepFailed` where it never gets there, `NotReady` where not by then."""
    said = process.hear("ready", until=until)
    if said is None:
        raise StepFailed("the program ended before its steps were steady")
    return SettledVersion(process, float(said["steady_ms"]), float(said["compile_s"]))


T = TypeVar("T")
LEAST_TURNS = 6
"""From here on two order statistics hold a median with 95 % (`analysis.intervals`)."""
_MOST_TURNS = 40
"""Chosen: what is not clear by then takes a quieter machine."""
_TURN_MS = 100.0
"""A turn takes at least this long, where the program has steps enough. Chosen, as for a run of
`bench`: neither the clock nor the wait at a mark shows in it."""
_NARROW = 1.04
"""high / low of an interval that says enough. Chosen: a gain of a few percent can be told."""
_CLEAR = 1.15
"""Likewise where the interval lies above 1: it is what is told."""
WORTH = 1.02
"""A gain that is below it at best is none. Chosen: less than two runs of one program differ."""


@dataclass
class Contestant:
    """A version in a race."""

    settled: SettledVersion
    base_ms: list[float] = field(default_factory=list)
    """The original's turns of the same rounds."""
    own_ms: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def ratio(self) -> Ratio | None:
        return ratio([self.base_ms], [self.own_ms], paired=True) if self.own_ms else None

    @property
    def is_decided(self) -> bool:
        found = self.ratio
        if self.failed or self.settled.over:
            return True
        if found is None or found.low is None or found.high is None:
            return False
        if len(self.own_ms) < LEAST_TURNS:
            return False
        if found.high < WORTH:
            return True
        return found.high / found.low <= (_CLEAR if found.low > 1 else _NARROW)


def _steps_of_turn(steady_ms: float, left: int | None) -> int:
    """`left` steps of the program, where that is known, are shared out over some rounds."""
    wanted = max(1, math.ceil(_TURN_MS / max(steady_ms, 1e-3)))
    if left is None:
        return wanted
    return max(1, min(wanted, left // (2 * LEAST_TURNS)))


def run_race(
    base: SettledVersion,
    others: Sequence[Contestant],
    left: int | None,
    tick: Callable[[int], None],
    until: float = math.inf,
) -> None:
    """Until each is decided, the original's program has come to its end, or it is `until` by
    `clock`: what was measured by then counts."""
    turn = 0
    while turn < _MOST_TURNS and clock() < until:
        waiting = [each for each in others if not each.is_decided]
        if not waiting or base.over:
            return
        tick(turn)
        # The same number of steps for all: a longer turn averages more noise away.
        steps = _steps_of_turn(base.steady_ms, left)
        base_first = turn % 2 == 0
        base_ms = base.take_turn(steps) if base_first else None
        taken = [(each, _turn(each, steps)) for each in rotated(waiting, turn)]
        if not base_first:
            base_ms = base.take_turn(steps)
        if base_ms is None:
            return
        for each, own_ms in taken:
            if own_ms is not None:
                each.base_ms.append(base_ms)
                each.own_ms.append(own_ms)
        turn += 1


def _turn(each: Contestant, steps: int) -> float | None:
    try:
        return each.settled.take_turn(steps)
    except StepFailed as failure:
        each.failed = str(failure)
        return None


def rotated(every: Sequence[T], turn: int) -> list[T]:
    """In the order of this turn."""
    at = turn % len(every)
    return [*every[at:], *every[:at]]
