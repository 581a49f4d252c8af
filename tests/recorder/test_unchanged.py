"""Programs that look at themselves see the same with and without capture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from programs_unchanged import differences  # noqa: E402
from subjects.unchanged import PLAIN, PROGRAMS  # noqa: E402

TOLD = ("closed-descriptors", "limits", "own-msgspec", "own-sitecustomize", "no-sitecustomize")
TOLD += ("twice-optimized", "broken-python")
"""Without torch each takes a moment."""


@pytest.mark.parametrize("name", TOLD)
def test_a_program_is_left_alone(name: str, tmp_path: Path) -> None:
    assert differences(PROGRAMS[name], tmp_path) == []


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - set(TOLD)))
def test_every_program_is_left_alone(name: str, tmp_path: Path) -> None:
    if name not in PLAIN:
        pytest.importorskip("torch")
    assert differences(PROGRAMS[name], tmp_path) == []
