"""A version that has reached its steady state, and the times of its turns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from compilescope.tune.stepped import StepFailed, Stepped


@dataclass
class SettledVersion:
    """One process of a version: what it took to settle, and what it has measured since."""

    process: Stepped
    steady_ms: float
    compile_s: float
    turns_ms: list[float] = field(default_factory=list)
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


def settle(process: Stepped, until: float = math.inf) -> SettledVersion:
    """Raises `StepFailed` where it never gets there, `NotReady` where not by then."""
    said = process.hear("ready", until=until)
    if said is None:
        raise StepFailed("the program ended before its steps were steady")
    return SettledVersion(process, float(said["steady_ms"]), float(said["compile_s"]))
