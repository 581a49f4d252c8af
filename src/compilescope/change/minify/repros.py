"""Repros without the command `minify`: of compilations that failed under `compilescope run
--repro`, and of a model (`compilescope.save_repro`).

While the program runs, only its failing graphs are put aside, within limits. They are minified and
verified when it has ended, and then deleted: they hold the user's weights.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import torch

from compilescope.backends.mock.backend import MockBackend
from compilescope.base.errors import ToolError
from compilescope.base.outputs import check_output, is_repro
from compilescope.change.minify.engine import NotInteresting, ReductionLimits, ReductionProgress
from compilescope.change.minify.graph.candidate import op_count
from compilescope.change.minify.graph.catcher import Catcher, source_of
from compilescope.change.minify.graph.minifier import minify_graph, warm_for, write_repro
from compilescope.change.minify.graph.record import RECORD, SKIPPED, FailingGraph, read_record
from compilescope.change.minify.graph.search import Search, find_record
from compilescope.change.minify.sandbox import Sandbox
from compilescope.change.minify.script.verification import ReproResult
from compilescope.change.minify.violations.repros import ViolationCatcher
from compilescope.instrument.torchapi.graphs.values import map_tensors
from compilescope.instrument.torchapi.guards.cost import compiled_apart
from compilescope.instrument.torchapi.repros.definitions import Unwritable, used_backend
from compilescope.record.bodies import CompileFailed, ReproWritten
from compilescope.record.command_run import append_bodies
from compilescope.record.run import Run, read_run
from compilescope.record.run_files import REPROS

if TYPE_CHECKING:
    from compilescope.change.minify.graph.minifier import Minified


FOLDER = "failures"
# Chosen, not measured: what a user waits for after a failed run, and what it may leave on disk.
_MOST_BYTES = 256 << 20
_MOST_FAILURES = 10
_MOST_S = 300.0
_MEMORY_BYTES = 8 << 30
_WORD = re.compile(r"[^a-z0-9]+")


def keep_failure(run: Path, error: BaseException) -> None:
    """Called in the program, with what a backend raised: puts the graph aside."""
    from compilescope.change.minify.graph.catcher import keep_failed

    keep_failed(run / FOLDER / str(os.getpid()), error, _MOST_FAILURES, _MOST_BYTES)


def write_repros(run: Path, note: Callable[[str], None] = lambda doing: None) -> None:
    """Make a script of each graph that was put aside, and tell the run what became of it."""
    folder = run / FOLDER
    homes = sorted(path.parent for path in folder.glob(f"*/*/{RECORD}"))
    try:
        events = _ids(read_run(run))
        written = _written(run, homes, events, note) if homes else {}
        for because, reason in _skipped(folder, events):
            written.setdefault(because, ReproWritten(because, reason=reason))
        append_bodies(run, written.values())
    finally:
        # It holds the user's weights: nothing of it stays but what a script needs.
        shutil.rmtree(folder, ignore_errors=True)


def _ids(run: Run) -> dict[tuple[int, str | None], str]:
    """(process, compile id) -> the failure's event."""
    return {(event.pid, event.compile_id): event.id for event, _ in run.of(CompileFailed)}


def _written(
    run: Path,
    homes: list[Path],
    events: Mapping[tuple[int, str | None], str],
    note: Callable[[str], None],
) -> dict[str, ReproWritten]:

    found: dict[str, ReproWritten] = {}
    end = time.monotonic() + _MOST_S
    with Sandbox(120.0, _MEMORY_BYTES, warm=warm_for(run / FOLDER)) as sandbox:
        for number, home in enumerate(homes):
            record = read_record(home)
            because = events.get((record.pid, record.compile_id))
            if because is None:
                continue
            left = (end - time.monotonic()) / (len(homes) - number)
            if left <= 0:
                found[because] = ReproWritten(because, reason="the time for repros ran out")
                continue
            doing = f"repro {number + 1} of {len(homes)}"
            note(doing)

            def tell(now: ReductionProgress, doing: str = doing) -> None:
                note(f"{doing}: {now.size[0]} operations, {now.calls} runs")

            made = _minified(home, run / REPROS / _name(record, because), sandbox, left, tell)
            found[because] = _told(made, run, because, op_count(record.graph))
    return found


def _name(record: FailingGraph, because: str) -> str:
    model = _WORD.sub("-", record.setting.model.lower()).strip("-")[:40] or "graph"
    return f"{model}-{_WORD.sub('-', because)}.py"


def _minified(
    home: Path,
    path: Path,
    sandbox: Sandbox,
    left_s: float,
    tell: Callable[[ReductionProgress], None],
) -> Minified | str:
    """What came of it, or why nothing did."""

    try:
        limits = ReductionLimits(time_s=left_s)
        return minify_graph(home, path, sandbox, limits=limits, progress=tell)
    except NotInteresting:
        return "on its own, in a fresh process, the graph compiles or fails differently"
    except ToolError as error:
        return error.message.rstrip(".")


def _told(made: Minified | str, run: Path, because: str, before: int) -> ReproWritten:
    if isinstance(made, str):
        return ReproWritten(because, reason=made, ops_before=before)
    if made.repro.path is None:
        return ReproWritten(because, reason=made.repro.reason, ops_before=before)
    inside = made.repro.path.relative_to(run).as_posix()
    ops = op_count(made.reduction.best.graph)
    return ReproWritten(because, inside, ops=ops, ops_before=before)


def _skipped(folder: Path, events: Mapping[tuple[int, str | None], str]) -> list[tuple[str, str]]:
    """Failures of which no graph could be put aside."""
    found = []
    for file in folder.glob(f"*/{SKIPPED}"):
        with suppress(OSError, msgspec.MsgspecError):
            for compile_id, reason in msgspec.json.decode(
                file.read_bytes(), type=list[tuple[str | None, str]]
            ):
                because = events.get((int(file.parent.name), compile_id))
                if because is not None:
                    found.append((because, reason))
    return found


Predicate = Literal["crash", "diff", "violation"]


def save_repro(
    model: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    path: str | os.PathLike[str] = "repro.py",
    backend: Any = "inductor",
    device: str | None = None,
    predicate: Predicate | None = None,
    minify: bool = True,
    limit_s: float = 120.0,
    memory_bytes: int | None = None,
) -> Path:
    """Write a script that shows what goes wrong when `model(*args, **kwargs)` is compiled.

    Looks for a failure or crash of the backend, then for a difference from eager results; with
    `device`, for what it would refuse; `predicate` asks for one of them. The model and arguments
    stay as they are, and the backend runs in other processes only. ToolError where nothing is
    wrong, or where nothing could be reproduced.
    """
    target = Path(path).absolute()
    if target.exists():
        check_output(target, ours=is_repro, hint="Give another path, or delete the file.")
    with tempfile.TemporaryDirectory(prefix="compilescope-") as place:
        folder = Path(place)
        with _catcher(folder, backend, device, predicate).catching():
            _run(model, args, kwargs or {})
        with Sandbox(limit_s, memory_bytes, warm=warm_for(folder)) as sandbox:
            home = _found(folder, _wanted(predicate, device), sandbox)
            repro = _write(home, target, sandbox, minify)
    if repro.path is None:
        raise ToolError(f"There is no repro: {repro.reason}.")
    return repro.path


def _wanted(predicate: Predicate | None, device: str | None) -> tuple[Predicate, ...]:
    if predicate is not None:
        return (predicate,)
    return ("violation",) if device is not None else ("crash", "diff")


def _catcher(
    folder: Path, backend: Any, device: str | None, predicate: Predicate | None
) -> Catcher | ViolationCatcher:
    if device is not None:
        return ViolationCatcher(folder, device=device)
    used = used_backend(backend)
    if predicate == "violation" and isinstance(used.function, MockBackend):
        return ViolationCatcher(folder, configuration=used.function.configuration_for({}))
    try:
        source = source_of(used)
    except Unwritable as reason:
        raise ToolError(f"There is no repro: {reason}.") from None
    return Catcher(folder, backend=source, options=used.options, eager=True)


def _run(model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Once, eagerly, on copies: its graphs go to disk as Dynamo hands them over."""
    own = copy.deepcopy(model) if isinstance(model, torch.nn.Module) else model
    given, named = map_tensors(_copied, (tuple(args), dict(kwargs)))
    with torch.random.fork_rng(devices=[]):
        compiled_apart(own, "eager", {})(*given, **named)


def _copied(value: torch.Tensor) -> torch.Tensor:
    return value.detach().clone().requires_grad_(value.requires_grad)


def _found(folder: Path, wanted: Sequence[Predicate], sandbox: Sandbox) -> Path:
    for each in wanted[:-1]:
        try:
            return find_record(folder, Search(each), 0, sandbox)
        except ToolError:
            continue
    return find_record(folder, Search(wanted[-1]), 0, sandbox)


def _write(home: Path, target: Path, sandbox: Sandbox, minify: bool) -> ReproResult:
    if minify:
        return minify_graph(home, target, sandbox).repro
    record = read_record(home)
    limit = sandbox.limit_s + 60
    return write_repro(record.graph, record, home, target, sandbox, timeout_s=limit)
