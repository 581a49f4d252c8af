"""How many processes a benchmark starts beside one another."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from compilescope.bench.memory_room import examined_at_once, fitting, free_bytes
from compilescope.bench.protocol import FirstCall, Spec

pytestmark = pytest.mark.torch


def test_a_model_that_fills_the_memory_is_examined_alone() -> None:
    spec = Spec(model="m")
    assert examined_at_once(free_bytes(), spec) == 1
    assert examined_at_once(0, spec) >= examined_at_once(1 << 30, spec) >= 1


def test_the_smaller_memory_decides_how_many_backends_fit() -> None:
    small = FirstCall(seconds=1.0, resident_bytes=1 << 20)
    tight = FirstCall(
        seconds=1.0, resident_bytes=1 << 20, device_bytes=1 << 30, device_free_bytes=5 << 30
    )
    assert fitting(tight, "inference") == 2 < fitting(small, "inference")
    assert fitting(small, "training") > fitting(small, "inference")
    assert fitting(FirstCall(seconds=1.0, resident_bytes=free_bytes()), "training") == 1
