"""No regular expression of the package takes more than linear time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKER = Path(__file__).parents[1] / "benchmarks" / "expressions.py"


@pytest.mark.slow
@pytest.mark.parametrize("rooms", [("model/", "logs/"), ("rules/", "report/"), ("fixes/", "cli/")])
def test_expressions_are_linear(rooms: tuple[str, ...]) -> None:
    ran = subprocess.run(
        [sys.executable, str(CHECKER), "--only", *rooms],
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert ran.returncode == 0, ran.stdout
