"""Watches islands while they run, for results that are wrong without any error (checking mode).

It looks for ops of the island that ran on the host, integers that were narrowed, results that are
constant, and numbers that differ from the same graph run eagerly on the same inputs. Each look
ends in one of three verdicts: pass, fail, or unknown with the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from compilescope.backends.adapters.comparison import (
    Opinion,
    beyond,
    compare_finiteness,
    compare_numbers,
    is_narrowed,
    is_same,
    spread,
    widened,
)
from compilescope.backends.adapters.island import UNSAID, AdapterWork
from compilescope.backends.adapters.ledger import GraphEntry
from compilescope.backends.islands.pieces import Piece
from compilescope.backends.islands.records import WrongnessCheck
from compilescope.torchapi.calls.operators import OperatorWatch, is_compiled, is_random, is_view

INPUTS = "inputs-changed"
SIDE = "wrong-side"
NARROWED = "integers-narrowed"
CONSTANT = "constant-output"
FINITE = "not-finite"
NUMBERS = "numbers"
_MOVES = """
    copy_ _to_copy to clone detach contiguous empty empty_like empty_strided set_ resize_ alias
    lift_fresh lift_fresh_copy zeros zeros_like full new_empty new_empty_strided item
    _local_scalar_dense
"""
_MOVING = frozenset(_MOVES.split())
"""What takes tensors to a device and back."""


_FILLING = frozenset({"new_zeros", "zeros_like", "new_ones", "ones_like"})
"""They look at the shape of what they are given, and not at its numbers."""


class IslandObserver:
    """Watches the calls of one island."""

    def __init__(
        self, work: AdapterWork, piece: Piece, number: int, graph: int, entry: GraphEntry
    ) -> None:
        self._work = work
        self._piece = piece
        self._number = number
        self._graph = graph
        self._entry = entry
        self._compiled: Any = None
        self._before: tuple[list[Any], list[Any]] | None = None
        nodes = entry.sizes.judgement.nodes
        self._names = [node.name for node in piece.outputs]
        self._fixed = _without_inputs(piece)
        self._ops = _work_of(nodes[node.name] for node in piece.nodes)
        self._random = any(
            is_random(call) for node in piece.nodes for call in nodes[node.name].calls or ()
        )

    def watch(self, compiled: Callable[..., Any]) -> None:
        """What the adapter gave: something that torch.compile made cannot be watched."""
        self._compiled = compiled

    def call(self, run: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        kept = [_copied(value) for value in inputs]
        given, watch = self._run(run, inputs)
        self._tell_side(watch)
        self._tell_inputs(inputs, kept)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            wanted = list(self._piece.module(*map(_copied, kept)))
        results = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(results) == len(wanted):  # Else the call itself says so.
            self._tell_integers(kept, results, wanted)
            self._tell_numbers(results, wanted, kept)
            self._tell_constants(results, wanted)
        return given

    def _run(
        self, run: Callable[..., Any], inputs: Sequence[Any]
    ) -> tuple[Any, OperatorWatch | None]:
        if is_compiled(self._compiled):
            return run(*inputs), None
        kinds = {value.device.type for value in inputs if isinstance(value, torch.Tensor)}
        with OperatorWatch(frozenset(kinds or {"cpu"})) as watch:
            return run(*inputs), watch

    def _tell_side(self, watch: OperatorWatch | None) -> None:
        status = self._entry.islands[self._number].status
        if status in ("fallback", "failed"):
            return  # It is said to run on the host.
        if watch is None:
            why = "torch.compile made it, and it runs eagerly while observed"
            self._note(SIDE, Opinion("unknown", why))
            self._note(UNSAID, Opinion("unknown", why))
            return
        own = {op: count for op, count in watch.seen.items() if op in self._ops}
        if status == "emulated":
            words = (
                f"the adapter says it emulates the device; {len(own)} of its ops ran on the host"
            )
            self._note(SIDE, Opinion("pass", words))
            self._note(UNSAID, Opinion("pass", words))
        elif own:
            shown = ", ".join(f"{op} {count} times" for op, count in sorted(own.items())[:4])
            verdict: Any = "unknown" if status == "partial" else "fail"
            self._note(SIDE, Opinion(verdict, f"the host ran {shown}"))
            whole = set(own) == self._ops
            which = "all" if whole else "only some of"
            words = f"{which} its ops ran eagerly on the host"
            self._note(UNSAID, Opinion(verdict if whole else "pass", words))
        else:
            others = sorted(op for op in watch.seen if not _is_moving(op))
            words = "none of its ops ran on the host"
            if others:
                words = f"the host ran {', '.join(others[:4])}; which code ran them is unknown"
            self._note(SIDE, Opinion("unknown" if others else "pass", words))
            self._note(UNSAID, Opinion("unknown" if others else "pass", words))

    def _tell_inputs(self, inputs: Sequence[Any], kept: Sequence[Any]) -> None:
        changed = [
            node.name
            for node, now, before in zip(self._piece.inputs, inputs, kept, strict=True)
            if isinstance(now, torch.Tensor) and not is_same(now, before)
        ]
        if changed:
            words = f"it wrote to {', '.join(changed[:4])}, which other code may still read"
            self._note(INPUTS, Opinion("fail", words))
        else:
            self._note(INPUTS, Opinion("pass", "its inputs are unchanged"))

    def _tell_integers(
        self, inputs: Sequence[Any], results: Sequence[Any], wanted: Sequence[Any]
    ) -> None:
        for name, result, value in zip(self._names, results, wanted, strict=True):
            if _are_tensors(result, value) and is_narrowed(result, value):
                words = f"{name} is eager mode's result truncated to 32 bits"
                self._note(NARROWED, Opinion("fail", words))
        width = self._work.capabilities.narrowed_to
        if width is None:
            return
        names = [node.name for node in self._piece.inputs] + self._names
        for name, value in zip(names, (*inputs, *wanted), strict=True):
            opinion = beyond(value, width) if isinstance(value, torch.Tensor) else None
            if opinion is not None:
                self._note(NARROWED, Opinion(opinion.verdict, f"{name}: {opinion.reason}"))

    def _tell_numbers(
        self, results: Sequence[Any], wanted: Sequence[Any], inputs: Sequence[Any]
    ) -> None:
        if self._random:
            self._note(NUMBERS, Opinion("unknown", "the device draws its own random numbers"))
            return
        exact = _ExactIsland(self._piece, inputs)
        for number, name in enumerate(self._names):
            result, value = results[number], wanted[number]
            if not _are_tensors(result, value):
                continue
            tolerance = self._work.adapter.tolerance
            opinion = compare_numbers(
                result, value, tolerance, functools.partial(exact.result, number)
            )
            self._note(NUMBERS, Opinion(opinion.verdict, f"{name}: {opinion.reason}"))
            finite = compare_finiteness(result, value)
            if finite is not None:
                self._note(FINITE, Opinion(finite.verdict, f"{name}: {finite.reason}"))

    def _tell_constants(self, results: Sequence[Any], wanted: Sequence[Any]) -> None:
        before = self._before
        for number, name in enumerate(self._names):
            result, value = results[number], wanted[number]
            if not _are_tensors(result, value):
                continue
            earlier = None if before is None else (before[0][number], before[1][number])
            opinion = _constancy(result, value, earlier)
            if opinion.verdict == "unknown" and name in self._fixed and is_same(result, value):
                opinion = Opinion("pass", "it depends on no input and matches eager mode")
            self._note(CONSTANT, Opinion(opinion.verdict, f"{name}: {opinion.reason}"))
        self._before = [_copied(r) for r in results], [_copied(w) for w in wanted]

    def _note(self, name: str, opinion: Opinion) -> None:
        line = self._entry.sizes.judgement.lines
        frame = next((line[n.name] for n in self._piece.nodes if n.name in line), None)
        check = WrongnessCheck(
            name=name,
            verdict=opinion.verdict,
            reason=opinion.reason,
            stage=self._entry.stage,
            island=self._number,
            frame=frame,
        )
        # That a result is not constant can be told once for all.
        self._work.ledger.note(check, self._graph, settles=name == CONSTANT)


class _ExactIsland:
    """An island run in float64, once it is asked for."""

    def __init__(self, piece: Piece, inputs: Sequence[Any]) -> None:
        self._piece = piece
        self._inputs = inputs
        self._results: Sequence[Any] | None = None

    def result(self, number: int) -> torch.Tensor | None:
        if self._results is None:
            wide = [widened(v) if isinstance(v, torch.Tensor) else v for v in self._inputs]
            try:
                with torch.no_grad():
                    self._results = list(self._piece.module(*wide))
            except Exception:  # A graph may name a dtype that does not go with the others.
                self._results = []
        found = self._results[number] if number < len(self._results) else None
        return found if isinstance(found, torch.Tensor) else None


def _constancy(
    result: torch.Tensor, wanted: torch.Tensor, earlier: tuple[Any, Any] | None
) -> Opinion:
    """Is it one number all over, or the same at every call, where eager mode's is not?"""
    ends, eager = spread(result), spread(wanted)
    if ends is None or eager is None:
        return Opinion("unknown", "no finite numbers to compare")
    if ends[0] == ends[1] and eager[0] != eager[1]:
        words = f"{ends[0]:g} everywhere; eager mode gives {eager[0]:g} to {eager[1]:g}"
        return Opinion("fail", words)
    if earlier is not None and _are_tensors(*earlier) and not is_same(wanted, earlier[1]):
        if is_same(result, earlier[0]):
            return Opinion("fail", "the same as in the previous call; eager mode's result changed")
        return Opinion("pass", "it changes with its inputs")
    if ends[0] != ends[1]:
        return Opinion("pass", f"{ends[0]:g} to {ends[1]:g}")
    return Opinion(
        "unknown", f"{ends[0]:g} everywhere, as in eager mode; no other inputs were tried"
    )


def _without_inputs(piece: Piece) -> set[str]:
    """Nodes that give the same whatever the island is given: `zeros`, and what is made of it."""
    fixed: set[str] = set()
    for node in piece.nodes:
        name = getattr(node.target, "__name__", str(node.target)).partition(".")[0]
        if name in _FILLING or all(each.name in fixed for each in node.all_input_nodes):
            fixed.add(node.name)
    return fixed


def _work_of(nodes: Iterator[Any]) -> set[str]:
    """The operators that compute, among those of an island."""
    ops = {call.op for node in nodes for call in node.calls or ()}
    return {op for op in ops if not _is_moving(op)}


def _is_moving(op: str) -> bool:
    return op.split(".")[1] in _MOVING or is_view(op)


def _are_tensors(*values: Any) -> bool:
    return all(isinstance(value, torch.Tensor) for value in values)


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
