"""How many processes a benchmark starts beside one another."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from compilescope.measure.bench import memory_room
from compilescope.measure.bench.memory_room import examined_at_once, fitting, free_bytes
from compilescope.measure.bench.protocol import FirstCall, Spec

pytestmark = pytest.mark.torch
FREE = 100 << 30


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is free on a machine changes from one look to the next."""
    monkeypatch.setattr(memory_room, "free_bytes", lambda: FREE)


def test_a_model_that_fills_the_memory_is_examined_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_room, "_EXAMINER_CORES", 1e-3)  # Cores are no bound here.
    spec = Spec(model="m")
    assert examined_at_once(FREE, spec) == 1
    # Of 80 GiB: 2 for a process, and 6 copies of the weights.
    assert examined_at_once(0, spec) == 40
    assert examined_at_once(1 << 28, spec) == 10


def test_the_cores_bound_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_room, "_EXAMINER_CORES", 10**6)
    assert examined_at_once(0, Spec(model="m")) == 1


def test_the_smaller_memory_decides_how_many_backends_fit() -> None:
    small = FirstCall(seconds=1.0, resident_bytes=1 << 30)
    tight = FirstCall(
        seconds=1.0, resident_bytes=1 << 30, device_bytes=1 << 30, device_free_bytes=5 << 30
    )
    assert fitting(tight, "inference") == 2
    assert (fitting(small, "inference"), fitting(small, "training")) == (40, 53)
    assert fitting(FirstCall(seconds=1.0, resident_bytes=FREE), "training") == 1


def test_free_memory_is_a_number() -> None:
    assert free_bytes() >= 0
