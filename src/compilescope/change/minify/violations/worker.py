"""A process that reduces the records in a folder, writes a script for each, and runs the scripts.

python -m compilescope.change.minify.violations.worker FOLDER REDUCE_SECONDS LIMIT_SECONDS

Importing torch takes longer than all the rest, so one process does both parts. It forks: the fork
tries smaller graphs, and this process, in which nothing was compiled yet, runs what came of it.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import torch
from msgspec.structs import replace

from compilescope.backends.mock.messages import ConstraintError
from compilescope.base.processes.fork import fork_is_safe, in_a_fork
from compilescope.change.minify.engine import NotInteresting, Outcome, ReductionLimits, reduce
from compilescope.change.minify.graph.candidate import GraphCandidate, readable, without_ops
from compilescope.change.minify.graph.minifier import all_passes, start_of
from compilescope.change.minify.graph.record import RECORD, FailingGraph, read_record
from compilescope.change.minify.graph.tasks import script_names, violation_outcome
from compilescope.change.minify.script.graph_script import script_text
from compilescope.change.minify.script.verification import run_fresh
from compilescope.change.minify.violations.kinds import Fact, facts
from compilescope.record.written_graph import Input, WrittenGraph

REDUCED = "reduced.json"
_LEAST_S = 1.0
"""Even the last of many records gets this long. Chosen: time for a few candidates."""


def reduce_all(homes: Sequence[Path], seconds: float) -> None:
    """Each one's graph goes to disk beside its record."""
    end = time.monotonic() + seconds
    for number, home in enumerate(homes):
        left = (end - time.monotonic()) / (len(homes) - number)
        graph = reduced(home, max(left, _LEAST_S))
        if graph is not None:
            draft = home / f"{REDUCED}.part"
            draft.write_bytes(msgspec.json.encode(graph))
            draft.replace(home / REDUCED)


def reduced(home: Path, limit_s: float) -> WrittenGraph | None:
    """None where the graph does not show it on its own."""
    record = read_record(home)

    def judge(candidate: GraphCandidate) -> Outcome:
        torch.compiler.reset()
        graph = without_numbers(candidate.graph)
        text = script_text(graph, record.setting, record.shown, torch_version=record.torch)
        try:
            names = script_names(text, str(home), record, ())
        except Exception:  # The border of a worker: a candidate may be nonsense.
            return "invalid"
        return violation_outcome(names, record)

    for start in _starts(record):
        try:
            done = reduce(start, all_passes(), judge, limits=ReductionLimits(limit_s))
        except NotInteresting:
            continue
        return readable(without_numbers(done.best.graph))
    return None


def _starts(record: FailingGraph) -> Iterator[GraphCandidate]:
    """The calls that are suspected, without all others; then the graph as it is."""
    whole = start_of(record)
    for names in record.suspects:
        rest = [op.name for op in whole.graph.ops if op.name not in names]
        alone = without_ops(whole.graph, rest) if rest else None
        if alone is not None:
            yield GraphCandidate(alone)
    yield whole


def without_numbers(graph: WrittenGraph) -> WrittenGraph:
    """A constraint looks at shapes, dtypes and layouts: no input needs the numbers that it had."""

    def plain(each: Input) -> Input:
        return replace(each, fill="random", saved="") if each.fill == "saved" else each

    return replace(graph, inputs=tuple(map(plain, graph.inputs)))


def read_reduced(home: Path) -> WrittenGraph | None:
    try:
        return msgspec.json.decode((home / REDUCED).read_bytes(), type=WrittenGraph)
    except (OSError, msgspec.DecodeError):
        return None


class Replayed(msgspec.Struct, frozen=True):
    """What came of one script."""

    facts: tuple[Fact, ...] = ()
    error: str = ""
    """What else it raised."""


def replay(out: Path, scripts: Iterable[Path]) -> None:
    """What is known so far is on disk: should time run out, the first scripts have their result."""
    replayed: dict[str, Replayed] = {}
    for script in scripts:
        replayed[script.name] = _replay(str(script))
        draft = out.with_suffix(".part")
        draft.write_bytes(msgspec.json.encode(replayed))
        draft.replace(out)


def read_replayed(out: Path) -> dict[str, Replayed]:
    try:
        return msgspec.json.decode(out.read_bytes(), type=dict[str, Replayed])
    except (OSError, msgspec.DecodeError):
        return {}


def _replay(script: str) -> Replayed:
    torch.compiler.reset()
    sys.argv = [script]
    try:
        shown = runpy.run_path(script, run_name="__repro__")
        shown["compiled"]()
    except ConstraintError as error:
        return Replayed(tuple(sorted(facts(error.violations))))
    except Exception as error:  # The border to torch: a script may be nonsense.
        first = (str(error).strip().splitlines() or ["no message"])[0]
        return Replayed(error=f"{type(error).__name__}: {first}")
    return Replayed()


DRAFT, REPLAYED = "draft.py", "replayed.json"
_REDUCE_ONLY = "reduce"
_SHARE = 0.5
"""Of the time limit, for the search: the rest is for the scripts. Chosen: a script that isn't
verified is worth nothing, so its check gets as much."""


def make_scripts(folder: Path, reduce_s: float, limit_s: float) -> tuple[int | None, list[str]]:
    """In a fresh process; `run_fresh`'s answer. What there is afterwards lies in the folder."""
    command = [sys.executable, "-m", __name__, str(folder), str(reduce_s), str(limit_s)]
    return run_fresh(command, limit_s)


def main(folder: str, reduce_s: str, limit_s: str, *how: str) -> None:
    homes = sorted(path.parent for path in Path(folder).glob(f"*/{RECORD}"))
    if how == (_REDUCE_ONLY,):
        reduce_all(homes, float(reduce_s))
        return
    share_s = _SHARE * float(limit_s)
    if hasattr(os, "fork") and fork_is_safe():
        in_a_fork(lambda: reduce_all(homes, float(reduce_s)), share_s)
    else:
        again = [sys.executable, "-m", "compilescope.change.minify.violations.worker"]
        run_fresh([*again, folder, reduce_s, limit_s, _REDUCE_ONLY], share_s)
    replay(Path(folder, REPLAYED), _write_drafts(homes))


def _write_drafts(homes: Sequence[Path]) -> list[Path]:
    """Of the whole graph where there was no time for less, or where nothing less shows it."""
    drafts = []
    for home in homes:
        record = read_record(home)
        graph = read_reduced(home) or record.graph
        text = script_text(graph, record.setting, record.shown, torch_version=record.torch)
        draft = home.with_name(f"{home.name}-{DRAFT}")
        draft.write_text(text, encoding="utf-8")
        drafts.append(draft)
    return drafts


if __name__ == "__main__":
    main(*sys.argv[1:])
