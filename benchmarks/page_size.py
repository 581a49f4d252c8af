"""How large a page is by the number of graphs, and how quickly a browser shows it.

    python benchmarks/page_size.py [--graphs 50 500 1000] [--backend aot_eager] [--tool PATH ...]
                                   [--runs DIR] [--repeat 3]

Each run is a real one, of `subjects/many_graphs.py`. Every tool named (.../bin/compilescope of this
or another checkout; by default the one beside this Python) draws its page of the same recording,
made by the first of them; --runs keeps the recordings there, and takes those that are there
already. Scripting and first paint are Chromium's own figures, medians over the repeats; of the
scripting the best is held against the bar, for the others may have had to wait for the processor.

Bars for pages of up to 500 graphs, by the first tool: 3 MB, and 0.1 s of scripting before the page
stands. The exit status is 1 where one is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browsing import chromium, loaded  # noqa: E402

_BAR_GRAPHS, _BAR_BYTES, _BAR_SCRIPT_S = 500, 3_000_000, 0.1


def main() -> None:
    options = _options()
    missed = []
    with tempfile.TemporaryDirectory() as scratch, chromium("window-size=1280,900") as driver:
        home = (options.runs or Path(scratch)).resolve()
        print("  graphs      bytes  build s  DOM nodes  script ms  first paint ms  tool")
        for graphs in options.graphs:
            runs = record(options.tool[0], graphs, options.backend, home)
            for tool in options.tool:
                page = Path(scratch) / "page.html"
                seconds = build(tool, runs, page)
                size = page.stat().st_size
                print(f"{graphs:8} {size:10,} {seconds:8.1f}", end=" ")
                found = [loaded(driver, page.as_uri()) for _ in range(options.repeat)]
                print(_figures(found), f"  {tool}", flush=True)
                if tool == options.tool[0] and graphs <= _BAR_GRAPHS:
                    script = min(one["ScriptDuration"] for one in found)
                    if size >= _BAR_BYTES or script >= _BAR_SCRIPT_S:
                        missed.append(f"{graphs} graphs: {size:,} bytes, {script * 1000:.0f} ms")
    if missed:
        sys.exit("Over the bar: " + "; ".join(missed))


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
        program = [str(HERE / "subjects" / "many_graphs.py"), str(graphs), backend]
        command = [tool, "run", "--quiet", "--dir", str(runs), *program]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return runs


def build(tool: str, runs: Path, page: Path) -> float:
    """CPU seconds of the whole command."""
    before = _spent()
    command = [tool, "report", "--dir", str(runs), "-o", str(page)]
    subprocess.run(command, check=True, capture_output=True)
    return _spent() - before


def _spent() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _figures(found: list[dict[str, float]]) -> str:
    script, paint, nodes = (
        statistics.median(one[name] for one in found)
        for name in ("ScriptDuration", "FirstContentfulPaint", "Nodes")
    )
    return f"{nodes:10,.0f} {script * 1000:10.1f} {paint * 1000:15.0f}"


if __name__ == "__main__":
    main()
