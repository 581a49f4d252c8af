"""How large the page of a long run is. `benchmarks/page_size.py` measures how soon it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compilescope.record.run import Run, read_run
from report.test_page_bars import written
from samples import big_run

BYTES = 3_000_000
GRAPHS = 500
MANY_GRAPHS = Path(__file__).parents[2] / "benchmarks" / "subjects" / "many_graphs.py"


@pytest.mark.slow
def test_a_long_run_makes_a_small_page(tmp_path: Path) -> None:
    """As many graphs as a real one, at more stages and with more causes."""
    check_long(written(big_run(graphs=GRAPHS), tmp_path / "long.html"))


# Each about 2 min.
@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_long_recorded_run_makes_a_small_page(
    tmp_path: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    if backend == "inductor":
        request.getfixturevalue("cxx")
    run = recorded(tmp_path, backend)
    captured = [e for e in run.events if getattr(e.body, "stage", "") == "dynamo"]
    assert len(captured) >= GRAPHS
    check_long(written(run, tmp_path / "long.html"))


def recorded(folder: Path, backend: str) -> Run:
    tool = [sys.executable, "-m", "compilescope", "run", "--quiet", "--dir", str(folder / "runs")]
    program = [str(MANY_GRAPHS), str(GRAPHS), backend]
    made = subprocess.run([*tool, *program], cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    [home] = (path.parent for path in folder.glob("runs/*/run.json"))
    return read_run(home)


def check_long(page: Path) -> None:
    size = page.stat().st_size
    assert size < BYTES, f"the page has {size:,} bytes"
