"""--compile-all does what torch.compile(model) does, and leaves no trace of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recorder.harness import PROGRAMS, latest_run, run_captured, show

pytestmark = pytest.mark.torch


def seen(way: str) -> dict[str, Any]:
    program = str(PROGRAMS / "outermost_modules.py")
    ended = subprocess.run([sys.executable, program, way], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_it_is_as_if_torch_compile_were_written() -> None:
    written, auto = seen("written"), seen("auto")
    assert auto == written
    assert written["recurrent"]["stats"] == {}
    assert written["nested"]["breaks"]


def test_a_model_that_dynamo_skips_stays_eager(tmp_path: Path) -> None:
    """Dynamo looks into what a skipped forward calls, and must find nothing of ours there."""
    run_captured(tmp_path, "-q", "--compile-all", "--backend", "eager", "recurrent_model.py")
    said = show(tmp_path)
    assert said["graphs"] == 0
    assert said["recompiles"] == []
    events = list(latest_run(tmp_path).events)
    assert "autocompile" not in repr(events)
