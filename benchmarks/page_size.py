"""How large a page is by the number of graphs, and how quickly a browser shows it.

    python benchmarks/page_size.py [--graphs 50 500 1000] [--backend aot_eager] [--tool PATH ...]
                                   [--runs DIR] [--repeat 3]

Each run is a real one, of `subjects/many_graphs.py`. Every tool named (.../bin/compilescope of this
or another checkout; by default the one beside this Python) draws its page of the same recording,
made by the first of them; --runs keeps the recordings there, and takes those that are there
already. Scripting and first paint are Chromium's own figures, medians over the repeats.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browsing import chromium, loaded  # noqa: E402


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as scratch, chromium("window-size=1280,900") as driver:
        home = (options.runs or Path(scratch)).resolve()
        print("  graphs      bytes  build s  DOM nodes  script ms  first paint ms  tool")
        for graphs in options.graphs:
            runs = record(options.tool[0], graphs, options.backend, home)
            for tool in options.tool:
                page = Path(scratch) / "page.html"
                seconds = build(tool, runs, page)
                print(f"{graphs:8} {page.stat().st_size:10,} {seconds:8.1f}", end=" ")
                print(_figures(driver, page, options.repeat), f"  {tool}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(sys.executable).parent / "compilescope"
    parser.add_argument("--graphs", type=int, nargs="+", default=[50, 500, 1000])
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument("--tool", nargs="+", default=[str(beside)])
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    # The program below runs in a folder of its own.
    options.tool = [os.path.abspath(tool) for tool in options.tool]
    return options


def record(tool: str, graphs: int, backend: str, home: Path) -> Path:
    folder = home / f"{backend}-{graphs}"
    runs = folder / "runs"
    if not runs.exists():
        folder.mkdir(parents=True)
        program = [HERE / "subjects" / "many_graphs.py", str(graphs), backend]
        command = [tool, "run", "--quiet", "--dir", runs, *program]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return runs


def build(tool: str, runs: Path, page: Path) -> float:
    """CPU seconds of the whole command."""
    before = _spent()
    command = [tool, "report", "--dir", runs, "-o", page]
    subprocess.run(command, check=True, capture_output=True)
    return _spent() - before


def _spent() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _figures(driver: Any, page: Path, repeat: int) -> str:
    found = [loaded(driver, page.as_uri()) for _ in range(repeat)]
    script, paint, nodes = (
        statistics.median(one[name] for one in found)
        for name in ("ScriptDuration", "FirstContentfulPaint", "Nodes")
    )
    return f"{nodes:10,.0f} {script * 1000:10.1f} {paint * 1000:15.0f}"


if __name__ == "__main__":
    main()
