"""Our reduction of graphs and torch's own fx minifier, side by side on the same cases.

    python benchmarks/minifier.py [--only TEXT] [--json FILE] [--no-torch] [--verify]

Both start from the graph that Dynamo hands over and ask the same predicate, which runs the script
that would be handed out (an eager run, a compiled one, for differences one in float64), in this
process. `calls` is how often it was asked. torch's counts every question up to its end. Ours is
told twice: for the passes over operations alone, up to the end, and for all passes, those over
inputs, shapes, types and arguments too. `--verify` writes each script and runs it in a fresh
process.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import torch
from functorch.compile import minifier
from subjects.minifier_cases import CASES, Case

from compilescope.backends.mock.configuration import configure
from compilescope.base.errors import ToolError
from compilescope.change.minify.engine import reduce
from compilescope.change.minify.graph.candidate import op_count, readable
from compilescope.change.minify.graph.catcher import Catcher, source_of
from compilescope.change.minify.graph.minifier import WARM, all_passes, start_of, write_repro
from compilescope.change.minify.graph.record import FailingGraph, read_record
from compilescope.change.minify.graph.search import Search, find_record
from compilescope.change.minify.graph.tasks import run_trial
from compilescope.change.minify.sandbox import Sandbox
from compilescope.change.minify.script.graph_script import script_text
from compilescope.change.minify.violations.repros import ViolationCatcher
from compilescope.instrument.torchapi.repros.definitions import Unwritable, used_backend
from compilescope.instrument.torchapi.repros.graph_writer import watched_backends, write_graph

GRAPH_PASSES = (
    "suffix", "outputs", "dead-code", "prefix", "blocks", "literals", "operations",
    "inner-graphs", "bypass",
)  # fmt: skip


def caught(case: Case, folder: Path, sandbox: Sandbox) -> Path:
    """The graph of a case, on disk, with what is wrong with it."""
    torch.manual_seed(0)
    model, x = case.model(), torch.randn(case.shape)
    if case.predicate == "violation":
        catcher: Any = ViolationCatcher(folder)
        catcher._configuration = configure(constraints=list(case.constraints), strict=True)
    else:
        catcher = Catcher(folder, backend=source_of(used_backend(case.backend)), eager=True)
    torch.compiler.reset()
    with catcher.catching(), torch.no_grad():
        torch.compile(model, backend="eager", fullgraph=True)(x)
    return find_record(folder, Search(case.predicate), 0, sandbox)


class Predicate:
    """Counts how often it is asked."""

    def __init__(self, home: Path, record: FailingGraph) -> None:
        self.home, self.record = home, record
        self.calls = 0

    def __call__(self, graph: Any, values: Any = None) -> bool:
        self.calls += 1
        record = self.record
        text = script_text(graph, record.setting, record.shown, torch_version=record.torch)
        saved = [each.saved for each in graph.inputs if each.fill == "saved"]
        torch.compiler.reset()
        quiet = io.StringIO()
        with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
            if values is None:
                payload = {"folder": str(self.home), "text": text, "saved": saved}
                return run_trial(payload) == "kept"
            return _tried_with(text, record, values)


def _tried_with(text: str, record: FailingGraph, values: dict[str, Any]) -> bool:
    from compilescope.change.minify.graph import tasks

    names: dict[str, Any] = {"__name__": "__repro__", "__file__": "repro.py", "saved": values}
    try:
        exec(compile(text, "repro.py", "exec"), names)
    except Exception:
        return False
    return tasks._CHECKS[record.shown.kind](names, record)[0] == "kept"


def ours(home: Path, record: FailingGraph, only: tuple[str, ...] = ()) -> tuple[Any, int, float]:
    asked = Predicate(home, record)
    passes = [each for each in all_passes() if not only or each.id in only]
    begun = time.perf_counter()
    found = reduce(start_of(record), passes, lambda each: "kept" if asked(each.graph) else "lost")
    return found.best.graph, found.calls, time.perf_counter() - begun


def theirs(case: Case, home: Path, record: FailingGraph) -> tuple[int, int, float]:
    """torch's minifier on the module that Dynamo handed over."""
    taken: list[Any] = []

    def take(handed: Any) -> Any:
        taken.append((handed.module, list(handed.inputs)))
        return handed.module.forward

    torch.manual_seed(0)
    model, x = case.model(), torch.randn(case.shape)
    torch.compiler.reset()
    with watched_backends(take), torch.no_grad():
        torch.compile(model, backend="eager", fullgraph=True)(x)
    module, inputs = taken[0]
    for node in module.graph.nodes:
        node.meta.clear()
    asked = Predicate(home, record)

    def fails(candidate: Any, values: Any) -> bool:
        try:
            written = write_graph(candidate, values)
        except Unwritable:
            asked.calls += 1
            return False
        return asked(written.graph, written.values)

    begun = time.perf_counter()
    quiet = io.StringIO()
    with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
        smaller, _ = minifier(module, inputs, fails, dump_state=lambda *_: None)
    calls = [node for node in smaller.graph.nodes if node.op.startswith("call_")]
    return len(calls), asked.calls, time.perf_counter() - begun


def measure(case: Case, folder: Path, sandbox: Sandbox, options: Any) -> dict[str, Any]:
    home = caught(case, folder, sandbox)
    record = read_record(home)
    _, graph_calls, graph_s = ours(home, record, GRAPH_PASSES)
    best, calls, seconds = ours(home, record)
    row: dict[str, Any] = {
        "case": case.name,
        "predicate": case.predicate,
        "nodes": op_count(record.graph),
        "ours": op_count(best),
        "ours_calls": graph_calls,
        "ours_s": round(graph_s, 1),
        "ours_all_calls": calls,
        "ours_all_s": round(seconds, 1),
    }
    if not options.no_torch:
        nodes, asked, took = theirs(case, home, record)
        row |= {"torch": nodes, "torch_calls": asked, "torch_s": round(took, 1)}
    if options.verify:
        made = write_repro(
            readable(best), record, home, folder / "repro.py", sandbox, timeout_s=300
        )
        row["verified"] = made.path is not None
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as place, Sandbox(300, warm=WARM) as sandbox:
        for number, case in enumerate(CASES):
            if options.only not in case.name:
                continue
            try:
                row = measure(case, Path(place) / str(number), sandbox, options)
            except ToolError as error:
                row = {"case": case.name, "error": error.message}
            rows.append(row)
            print(msgspec.json.encode(row).decode(), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    both = [row for row in rows if "torch" in row]
    if both:
        fewer = sum(row["ours_calls"] <= row["torch_calls"] for row in both)
        smaller = sum(row["ours"] <= row["torch"] for row in both)
        print(f"{len(both)} cases: as small or smaller in {smaller}, no more calls in {fewer}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
