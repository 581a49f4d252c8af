"""No regular expression of the package takes more than linear time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKER = Path(__file__).parents[1] / "benchmarks" / "expressions.py"
PARTS = 4


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_expressions_are_linear(part: int) -> None:
    ran = subprocess.run(
        [sys.executable, str(CHECKER), "--part", f"{part}/{PARTS}"],
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert ran.returncode == 0, ran.stdout
