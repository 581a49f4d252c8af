"""`compilescope.save_repro`: the smallest script that shows what is wrong with a model."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from compilescope.backends.mock.backend import MockBackend
from compilescope.errors import ToolError
from compilescope.minify.graph.catcher import Catcher, source_of
from compilescope.minify.graph.minifier import minify_graph, warm_for, write_repro
from compilescope.minify.graph.record import read_record
from compilescope.minify.graph.search import Search, find_record
from compilescope.minify.sandbox import Sandbox
from compilescope.minify.script.verification import ReproResult
from compilescope.minify.violations.catcher import ViolationCatcher
from compilescope.outputs import check_output, is_repro
from compilescope.torchapi.graphs.values import map_tensors
from compilescope.torchapi.guards.cost import compiled_apart
from compilescope.torchapi.repros.backends import used_backend
from compilescope.torchapi.repros.constants import Unwritable

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
