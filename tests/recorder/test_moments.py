"""Rank and test of an event: asked anew for each, but for those that follow at once."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from compilescope.instrument.recorder.journal import MemoryJournal
from compilescope.instrument.recorder.recorder import Recorder
from compilescope.record.bodies import StanceChanged

pytestmark = pytest.mark.torch


def test_events_that_follow_at_once_share_rank_and_test_and_no_others(monkeypatch) -> None:
    journal = MemoryJournal()
    recorder = Recorder(journal)
    told = (
        ("0/0", True),
        ("0/0", False),
        ("0/0", False),
        ("0/1", True),
        ("0/2", True),
        (None, True),
    )
    for number, (compile_id, more) in enumerate(told):
        monkeypatch.setenv("RANK", str(number))
        monkeypatch.setenv("PYTEST_CURRENT_TEST", f"t.py::t{number} (call)")
        recorder.emit(StanceChanged("default"), compile_id=compile_id, more=more)
    seen = [(event.rank, event.test) for event in journal.events[1:]]
    assert seen == [(number, f"t.py::t{number}") for number in (0, 0, 2, 3, 4, 5)]
