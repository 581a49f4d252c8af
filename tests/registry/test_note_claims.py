"""What notes say of programs is so: each of their programs is run, and its last line checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.knowledge.registry.notes import read_notes
from registry.note_claims import programs, what_is_so

NOTES = read_notes()
# All of them take a minute: by default, every ninth.
SAMPLE = sorted(NOTES)[::9]
EACH = [pytest.param(i, marks=() if i in SAMPLE else pytest.mark.slow) for i in sorted(NOTES)]
_PARTS = Path(__file__).with_name("note_measurements.md").read_text(encoding="utf-8").split("\n## ")
MEASURED = {part[:6]: part for part in _PARTS[1:]}
TORCH = "2.13"
"""The torch that the notes speak of."""


def _this_torch() -> None:
    import torch

    if not torch.__version__.startswith(f"{TORCH}."):
        pytest.skip(f"the notes speak of torch {TORCH}")


@pytest.mark.torch
@pytest.mark.parametrize("gb_id", EACH)
def test_its_programs_do_what_it_says(gb_id: str) -> None:
    _this_torch()
    found = [(claim, what_is_so(program)) for program, claim in programs(NOTES[gb_id].text)]
    assert [said for said, _ in found] == [so for _, so in found]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("gb_id", sorted(MEASURED))
def test_what_is_said_in_words_was_measured(gb_id: str) -> None:
    _this_torch()
    found = [(claim, what_is_so(program)) for program, claim in programs(MEASURED[gb_id])]
    assert found and [said for said, _ in found] == [so for _, so in found]


def test_there_are_many_and_each_says_something() -> None:
    assert len(NOTES) >= 40
    for note in NOTES.values():
        assert 80 <= len(note.text.split()) <= 280, note.gb_id
        assert programs(note.text), note.gb_id
        assert f"torch {TORCH}" in " ".join(note.text.split()), note.gb_id
        for program, claim in programs(note.text):
            assert claim.startswith("# ") and " graph" in claim, (note.gb_id, program)


def test_their_links_lead_to_ids() -> None:
    import re

    from compilescope.knowledge.registry.history import load_history

    known = {gb_id.lower() for gb_id in load_history().titles}
    for note in NOTES.values():
        linked = re.findall(r"\]\((gb\d+)\.html\)", note.text)
        assert set(linked) <= known - {note.gb_id.lower()}, note.gb_id
