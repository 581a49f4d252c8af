"""One island: an adapter is asked to compile it, and whatever it answers is made sense of.

An adapter is a plugin: it may raise, give nonsense, or hand back the graph itself. Each is said.
"""

from __future__ import annotations

import functools
import inspect
import logging
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch.fx import GraphModule

from compilescope.backends.adapters.capabilities import AcceleratorCapabilities
from compilescope.backends.adapters.contract import (
    CompilationResult,
    CompilationStatus,
    IslandCompiler,
)
from compilescope.backends.adapters.custom_checks import FoundBreaches, custom_breaches
from compilescope.backends.checks import CheckedGraph, check_portable
from compilescope.backends.islands.pieces import Piece
from compilescope.backends.islands.records import GraphEntry, IslandEntry, Ledger, WrongnessCheck
from compilescope.instrument.torchapi.compilation.refusals import BackendRefusal
from compilescope.instrument.torchapi.graphs.described_graph import describe_graph
from compilescope.instrument.torchapi.graphs.values import with_values
from compilescope.instrument.torchapi.inductor.graph_compiles import compile_with_inductor

log = logging.getLogger(__name__)
UNSAID = "silent-fallback"
_LONGEST = 300
"""Letters. Chosen: one sentence of an error, or a value of an adapter's own."""


class AdapterError(BackendRefusal):
    """An adapter did something that leaves nothing to run. One sentence, and what to do."""

    def __init__(self, adapter: str, message: str, hint: str = "") -> None:
        # Dynamo cuts the traceback at this frame: whoever raises it.
        here = inspect.currentframe()
        raising = here.f_back if here is not None else None
        super().__init__(f"{message}\n{hint}" if hint else message, adapter, raising)
        self.hint = hint


AdapterError.__module__ = "compilescope"


class AdapterWork(NamedTuple):
    """Whose work the islands of a graph are: the adapter, what its device takes, and its book."""

    adapter: IslandCompiler
    capabilities: AcceleratorCapabilities
    ledger: Ledger

    @property
    def name(self) -> str:
        return type(self.adapter).__name__


class RunnableIsland(NamedTuple):
    """What runs an island."""

    run: Callable[..., Any]
    fallback: Callable[..., Any] | None = None
    """What runs it where `run` raises."""


def check_live(
    module: GraphModule, capabilities: AcceleratorCapabilities, inputs: Sequence[Any] | None
) -> CheckedGraph:
    """All that the device has against a live graph."""
    module = with_values(module, inputs)
    graph = describe_graph(module)
    found = custom_breaches(capabilities.custom_checks, module, graph)
    constraints = [*capabilities.constraints, FoundBreaches(found)]
    return check_portable(graph, constraints, "dynamo", capabilities.name)


def compile_island(
    work: AdapterWork, piece: Piece, island: IslandEntry, label: str, entry: GraphEntry
) -> RunnableIsland:
    """Notes in `island` and `entry` how it went."""
    adapter = work.adapter
    lowered = _lowered(work, piece, island, label)
    if lowered is None:
        return _on_host(work, piece, island, label, entry)
    result = _result(work, lowered, piece, label)
    if isinstance(result, Exception):
        island.status, island.reason = "failed", _words(result)
        return _on_host(work, piece, island, label, entry)
    island.warnings = result.warnings
    island.metadata = {str(key): str(value)[:_LONGEST] for key, value in result.metadata.items()}
    island.status, island.reason = _STATUS[result.status], result.why
    if result.status is CompilationStatus.SUCCESS:
        island.reason = ""
        if adapter.emulated:
            island.status = "emulated"
        elif _is_the_graph(result.compiled_fn, (piece.module, lowered)):
            island.status = "fallback"
            island.reason = "compile() returned the graph itself, which runs eagerly on the host"
            _note_unsaid(work, island, entry)
    run = result.get_callable()
    if run is None:
        return _on_host(work, piece, island, label, entry)
    if island.status in ("fallback", "failed"):
        _say(label, island)
    return RunnableIsland(run, result.fallback_fn if run is not result.fallback_fn else None)


_STATUS: dict[CompilationStatus, Any] = {
    CompilationStatus.SUCCESS: "compiled",
    CompilationStatus.PARTIAL: "partial",
    CompilationStatus.FALLBACK: "fallback",
    CompilationStatus.FAILED: "failed",
}


def _lowered(
    work: AdapterWork, piece: Piece, island: IslandEntry, label: str
) -> GraphModule | None:
    """None where the lowered graph has something that the device does not take."""
    try:
        lowered = work.adapter.lower(piece.module, piece.examples)
    except Exception as error:  # The border to a plugin.
        raise AdapterError(
            work.name, f"{label}: lower() failed with {_words(error)}{_raised_at(error)}"
        ) from error
    if not isinstance(lowered, GraphModule):
        raise AdapterError(
            work.name,
            f"{work.name}.lower() returned {type(lowered).__name__}; it must return a GraphModule.",
        )
    if lowered is not piece.module:
        errors = check_live(lowered, work.capabilities, piece.examples).errors
        if errors:
            first = errors[0]
            island.status = "failed"
            island.reason = (
                f"lower() produced {len(errors)} ops that the device does not support: "
                f"{first.op}, {first.found}; supported: {first.allowed}"
            )
            return None
    return lowered


def _result(
    work: AdapterWork, lowered: GraphModule, piece: Piece, label: str
) -> CompilationResult | Exception:
    """An exception that is to be taken for a failure comes back as it is."""
    try:
        given = work.adapter.compile(lowered, piece.examples)
    except Exception as error:  # The border to a plugin.
        if work.adapter.on_error == "fallback":
            return error
        raise AdapterError(
            work.name,
            f"{label} could not be compiled: {_words(error)}{_raised_at(error)}",
            "Return CompilationResult(status='failed') from compile() to run an island on the "
            "host, or set on_error='fallback'.",
        ) from error
    if isinstance(given, CompilationResult):
        return given
    if callable(given) and not isinstance(given, type):
        return CompilationResult("success", given)
    raise AdapterError(
        work.name,
        f"{work.name}.compile() returned {type(given).__name__}; it must return a "
        "CompilationResult, or a function of the graph's inputs.",
    )


def _on_host(
    work: AdapterWork, piece: Piece, island: IslandEntry, label: str, entry: GraphEntry
) -> RunnableIsland:
    if work.adapter.fallback == "refuse":
        raise AdapterError(
            work.name,
            f"{label} was not compiled: {island.reason or 'no reason given'}.",
            "Use fallback='eager' or 'inductor' to run such islands on the host.",
        )
    _say(label, island)
    return RunnableIsland(host_function(piece, work.adapter.fallback, entry.notes))


def host_function(piece: Piece, fallback: str, notes: list[str]) -> Callable[..., Any]:
    """What runs a piece on the host."""
    if fallback != "inductor" or not piece.outputs:
        return _eagerly(piece)
    try:
        return compile_with_inductor(piece.module, piece.examples)
    except Exception as error:  # The border to Inductor, which may refuse for any reason.
        note = f"Inductor could not compile {piece.name}, so it runs eagerly: {_words(error)}"
        log.warning("%s", note)
        notes.append(note)
        return _eagerly(piece)


def _eagerly(piece: Piece) -> Callable[..., Any]:
    run: Callable[..., Any] = piece.module.forward
    return run


def _say(label: str, island: IslandEntry) -> None:
    log.warning("%s runs on the host: %s", label, island.reason or "no reason given")


def _note_unsaid(work: AdapterWork, island: IslandEntry, entry: GraphEntry) -> None:
    lines = entry.sizes.judgement.lines
    check = WrongnessCheck(
        name=UNSAID,
        verdict="fail",
        reason=island.reason,
        stage=entry.stage,
        island=entry.islands.index(island),
        frame=next((lines[name] for name in island.names if name in lines), None),
    )
    work.ledger.note(check, len(work.ledger.graphs) - 1)


def _is_the_graph(run: Any, graphs: tuple[GraphModule, ...]) -> bool:
    """Is it the graph itself, or one of its methods, whatever is wrapped around it?"""
    for _ in range(8):
        if any(run is graph for graph in graphs):
            return True
        if isinstance(run, functools.partial):
            run = run.func
        else:
            owner = getattr(run, "__self__", None)
            run = getattr(run, "__wrapped__", None) if owner is None else owner
        if run is None:
            return False
    return False


def _raised_at(error: Exception) -> str:
    """Dynamo drops where an error came from: its words must tell."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    return f" ({frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name})"


def _words(error: Exception) -> str:
    said = " ".join(str(error).split())[:_LONGEST]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
