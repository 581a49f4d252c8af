"""Which of several kinds of calls begins a step, by times that are made up."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from compilescope.instrument.torchapi.times.step_kinds import CallKinds, CountedRegion

MS = 1_000_000


class Program:
    """Calls regions, and says how long each call takes."""

    def __init__(self) -> None:
        self.now = 0
        self.kinds = CallKinds(lambda: self.now)
        self.layer, self.head = CountedRegion(), CountedRegion()

    def call(self, region: CountedRegion, ms: float, *, grad: bool = True) -> None:
        self.kinds.note(region, grad)
        self.now += int(ms * MS)

    def step(self, *, pause_ms: float = 0.0) -> None:
        for _ in range(3):
            self.call(self.layer, 1)
        self.call(self.head, 1)
        self.now += int(pause_ms * MS)


def begun_by(program: Program) -> CountedRegion:
    step = program.kinds.step(3)
    assert step is not None
    return step.region


def test_the_region_called_least_often_begins_the_step() -> None:
    program = Program()
    for _ in range(8):
        program.step()
    assert begun_by(program) is program.head


def test_a_machine_that_does_something_else_now_and_then_changes_nothing() -> None:
    program = Program()
    for number in range(12):
        program.step(pause_ms=500 if number % 5 == 0 else 0)
    assert begun_by(program) is program.head


def test_the_loop_that_takes_longest_has_the_step() -> None:
    program = Program()
    for _ in range(20):
        program.call(program.layer, 0.5, grad=False)
    for _ in range(20):
        program.call(program.head, 5)
    assert begun_by(program) is program.head
