"""The page of a long run, in a real browser: how large it is, and how soon it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from browsing import script_seconds
from compilescope.model.run import Run, read_run
from report.test_page_bars import written
from samples import big_run

pytestmark = pytest.mark.browser

BYTES = 3_000_000
SCRIPT_SECONDS = 0.1
GRAPHS = 500
MANY_GRAPHS = Path(__file__).parents[2] / "benchmarks" / "subjects" / "many_graphs.py"


@pytest.mark.slow
def test_a_long_run_makes_a_small_quick_page(driver: Any, tmp_path: Path) -> None:
    """As many graphs as a real one, at more stages and with more causes."""
    check_long(driver, written(big_run(graphs=GRAPHS), tmp_path / "long.html"))


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_long_recorded_run_makes_a_small_quick_page(
    driver: Any, tmp_path: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    if backend == "inductor":
        request.getfixturevalue("cxx")
    run = recorded(tmp_path, backend)
    captured = [e for e in run.events if getattr(e.body, "stage", "") == "dynamo"]
    assert len(captured) >= GRAPHS
    check_long(driver, written(run, tmp_path / "long.html"))


def recorded(folder: Path, backend: str) -> Run:
    tool = [sys.executable, "-m", "compilescope", "run", "--quiet", "--dir", str(folder / "runs")]
    program = [str(MANY_GRAPHS), str(GRAPHS), backend]
    made = subprocess.run([*tool, *program], cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    [home] = (path.parent for path in folder.glob("runs/*/run.json"))
    return read_run(home)


def check_long(driver: Any, page: Path) -> None:
    size = page.stat().st_size
    # The best of three: the others may have had to wait for the processor.
    seconds = min(script_seconds(driver, page.as_uri()) for _ in range(3))
    assert size < BYTES, f"the page has {size:,} bytes"
    assert seconds < SCRIPT_SECONDS, f"{seconds * 1000:.0f} ms of scripting before it stands"
