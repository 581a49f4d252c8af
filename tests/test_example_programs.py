"""The examples show what they promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

pytestmark = pytest.mark.torch


def seen(name: str, runs: Path) -> dict[str, Any]:
    tool = [sys.executable, "-m", "compilescope", "run", "--json", "--dir", str(runs)]
    made = subprocess.run([*tool, str(EXAMPLES / name)], capture_output=True, text=True)
    return dict(json.loads(made.stdout.splitlines()[-1]))


def test_a_backend_ends_the_program(tmp_path: Path) -> None:
    run = seen("crash.py", tmp_path)
    assert run["exit_status"] == 1 and "aten.topk" in run["ended"]["exception"]
    assert len(run["failures"]) == 1


@pytest.mark.slow
def test_training_breaks_and_hits_the_recompile_limit(tmp_path: Path) -> None:
    run = seen("train_storm.py", tmp_path)
    assert run["exit_status"] == 0 and len(run["sites"]) >= 4
    assert "recompile-limit" in {frame["cause"] for frame in run["eager_frames"]}


@pytest.mark.slow
def test_generation_breaks_and_recompiles(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    run = seen("generate.py", tmp_path)
    assert run["exit_status"] == 0 and run["sites"] and run["recompiles"]
