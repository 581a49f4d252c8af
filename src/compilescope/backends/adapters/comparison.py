"""Islands held to eager mode while they run (checking mode): results that are wrong without any
error, as numbers, as constants, as narrowed integers.

It looks for ops of the island that ran on the host, integers that were narrowed, results that are
constant, and numbers that differ from the same graph run eagerly on the same inputs. Each look
ends in one of three verdicts: pass, fail, or unknown with the reason.

"Unknown" is a verdict of its own: what cannot be compared, or is too small to tell, never passes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from compilescope.backends.adapters.island import UNSAID, AdapterWork
from compilescope.backends.islands.pieces import Piece
from compilescope.backends.islands.records import GraphEntry, WrongnessCheck
from compilescope.instrument.torchapi.calls.operators import (
    OperatorWatch,
    is_compiled,
    is_random,
    is_view,
)
from compilescope.record.body import Verdict

_INPUTS = "inputs-changed"
_SIDE = "wrong-side"
_NARROWED = "integers-narrowed"
_CONSTANT = "constant-output"
_FINITE = "not-finite"
_NUMBERS = "numbers"
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
            self._note(_SIDE, Opinion("unknown", why))
            self._note(UNSAID, Opinion("unknown", why))
            return
        own = {op: count for op, count in watch.seen.items() if op in self._ops}
        if status == "emulated":
            words = (
                f"the adapter says it emulates the device; {len(own)} of its ops ran on the host"
            )
            self._note(_SIDE, Opinion("pass", words))
            self._note(UNSAID, Opinion("pass", words))
        elif own:
            shown = ", ".join(f"{op} {count} times" for op, count in sorted(own.items())[:4])
            verdict: Any = "unknown" if status == "partial" else "fail"
            self._note(_SIDE, Opinion(verdict, f"the host ran {shown}"))
            whole = set(own) == self._ops
            which = "all" if whole else "only some of"
            words = f"{which} its ops ran eagerly on the host"
            self._note(UNSAID, Opinion(verdict if whole else "pass", words))
        else:
            others = sorted(op for op in watch.seen if not _is_moving(op))
            words = "none of its ops ran on the host"
            if others:
                words = f"the host ran {', '.join(others[:4])}; which code ran them is unknown"
            self._note(_SIDE, Opinion("unknown" if others else "pass", words))
            self._note(UNSAID, Opinion("unknown" if others else "pass", words))

    def _tell_inputs(self, inputs: Sequence[Any], kept: Sequence[Any]) -> None:
        changed = [
            node.name
            for node, now, before in zip(self._piece.inputs, inputs, kept, strict=True)
            if isinstance(now, torch.Tensor) and not is_same(now, before)
        ]
        if changed:
            words = f"it wrote to {', '.join(changed[:4])}, which other code may still read"
            self._note(_INPUTS, Opinion("fail", words))
        else:
            self._note(_INPUTS, Opinion("pass", "its inputs are unchanged"))

    def _tell_integers(
        self, inputs: Sequence[Any], results: Sequence[Any], wanted: Sequence[Any]
    ) -> None:
        for name, result, value in zip(self._names, results, wanted, strict=True):
            if _are_tensors(result, value) and is_narrowed(result, value):
                words = f"{name} is eager mode's result truncated to 32 bits"
                self._note(_NARROWED, Opinion("fail", words))
        width = self._work.capabilities.narrowed_to
        if width is None:
            return
        names = [node.name for node in self._piece.inputs] + self._names
        for name, value in zip(names, (*inputs, *wanted), strict=True):
            opinion = beyond(value, width) if isinstance(value, torch.Tensor) else None
            if opinion is not None:
                self._note(_NARROWED, Opinion(opinion.verdict, f"{name}: {opinion.reason}"))

    def _tell_numbers(
        self, results: Sequence[Any], wanted: Sequence[Any], inputs: Sequence[Any]
    ) -> None:
        if self._random:
            self._note(_NUMBERS, Opinion("unknown", "the device draws its own random numbers"))
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
            self._note(_NUMBERS, Opinion(opinion.verdict, f"{name}: {opinion.reason}"))
            finite = compare_finiteness(result, value)
            if finite is not None:
                self._note(_FINITE, Opinion(finite.verdict, f"{name}: {finite.reason}"))

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
            self._note(_CONSTANT, Opinion(opinion.verdict, f"{name}: {opinion.reason}"))
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
        self._work.ledger.note(check, self._graph, settles=name == _CONSTANT)


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


_TOLERANCES = {
    torch.float64: 1e-7,
    torch.float32: 1e-4,
    torch.float16: 5e-3,
    torch.bfloat16: 2e-2,
    torch.complex128: 1e-7,
    torch.complex64: 1e-4,
}
"""Relative to the largest number. Chosen: in float32 and 16 bits looser than
torch.testing.assert_close (1.3e-6, 1e-3 and 1.6e-2), for a device's compiler adds up in an order of
its own; what is beyond is compared with float64."""
_LOOSEST = 0.15
"""For any other dtype. Chosen: a little more than a unit of float8_e4m3fn (0.125)."""
_NOISE = 8.0
"""Times the rounding error of 1: what is smaller may be the difference of two large numbers.
Chosen; it only makes the verdict "unknown"."""
_AS_GOOD = 4.0
"""Times eager mode's own error. Chosen, as `_AS_LARGE` in tensors/rounding.py."""
Exact = Callable[[], torch.Tensor | None]
"""Gives the same result, computed in float64; None where that cannot be done."""


class Opinion(NamedTuple):
    """A verdict and its reason."""

    verdict: Verdict
    reason: str


def compare_numbers(
    given: torch.Tensor,
    wanted: torch.Tensor,
    tolerance: float | None = None,
    exact: Exact | None = None,
) -> Opinion:
    """Relative to the largest number that is wanted, since small ones are differences of large.

    `exact` is asked where they are too far apart: whoever is as near to the truth as eager mode is
    right, where all is rounding error.
    """
    if not (is_plain(given) and is_plain(wanted)):
        return Opinion("unknown", "a sparse or nested tensor, not compared")
    if given.shape != wanted.shape or given.dtype != wanted.dtype:
        found, asked = f"{given.dtype} {list(given.shape)}", f"{wanted.dtype} {list(wanted.shape)}"
        return Opinion("fail", f"{found}; {asked} in eager mode")
    if not given.numel():
        return Opinion("pass", "empty")
    if not (given.is_floating_point() or given.is_complex()):
        return _compare_exactly(given, wanted)
    limit = _TOLERANCES.get(wanted.dtype, _LOOSEST) if tolerance is None else tolerance
    wide = torch.complex128 if given.is_complex() else torch.float64
    one, other = given.to(wide), wanted.to(wide)
    finite = torch.isfinite(one) & torch.isfinite(other)
    if not finite.any():
        return Opinion("unknown", "no number is finite on both sides")
    largest = float(other[finite].abs().max())
    off = float((one - other)[finite].abs().max())
    words = f"largest difference {off:.2g}, largest number {largest:.2g}"
    if off <= limit * max(largest, torch.finfo(torch.float32).tiny):
        return Opinion("pass", words)
    truth = exact() if exact is not None else None
    if truth is not None and truth.shape == wanted.shape:
        own = float((other - truth.to(wide))[finite].abs().nan_to_num(0).max())
        far = float((one - truth.to(wide))[finite].abs().nan_to_num(torch.inf).max())
        if far <= _AS_GOOD * own:
            return Opinion("pass", f"{words}; eager mode itself is off by {own:.2g}")
        words += f"; eager mode itself is off by {own:.2g}"
    if off <= _NOISE * torch.finfo(wanted.dtype).eps:
        return Opinion("unknown", f"{words}: too small to distinguish from rounding error")
    return Opinion("fail", words)


def _compare_exactly(given: torch.Tensor, wanted: torch.Tensor) -> Opinion:
    wrong = int((given != wanted).sum())
    if not wrong:
        return Opinion("pass", "equal")
    return Opinion("fail", f"{wrong} of {given.numel()} numbers differ")


def compare_finiteness(given: torch.Tensor, wanted: torch.Tensor) -> Opinion | None:
    """None for integers."""
    if not (given.is_floating_point() or given.is_complex()) or given.shape != wanted.shape:
        return None
    if not (is_plain(given) and is_plain(wanted)):
        return None
    lost = int((~torch.isfinite(widened(given)) & torch.isfinite(widened(wanted))).sum())
    if lost:
        return Opinion(
            "fail", f"{lost} of {given.numel()} are not finite, but are finite in eager mode"
        )
    return Opinion("pass", "finite wherever eager mode is")


def is_plain(value: torch.Tensor) -> bool:
    """Can its numbers be looked at one by one?"""
    return value.layout is torch.strided and not value.is_nested and not value.is_quantized


def widened(value: torch.Tensor) -> torch.Tensor:
    """In float64, where it is a number that is not whole."""
    if value.is_complex():
        return value.to(torch.complex128)
    return value.to(torch.float64) if value.is_floating_point() else value


def spread(value: torch.Tensor) -> tuple[float, float] | None:
    """The least and the largest number; None for what has none."""
    if not is_plain(value) or not value.numel():
        return None
    if value.is_complex():
        value = value.abs()
    numbers = value.to(torch.float64)
    numbers = numbers[torch.isfinite(numbers)]
    return (float(numbers.min()), float(numbers.max())) if numbers.numel() else None


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal number by number; what is no number equals itself. What cannot be looked at is held
    to be the same: no difference was seen."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not (is_plain(one) and is_plain(other)):
        return True
    one, other = widened(one), widened(other)
    return bool(((one == other) | ((one != one) & (other != other))).all())


def beyond(value: torch.Tensor, width: int) -> Opinion | None:
    """Are there integers that do not fit into so many bits? None for what is no wider integer."""
    if value.is_floating_point() or value.is_complex() or value.dtype is torch.bool:
        return None
    if not is_plain(value) or torch.iinfo(value.dtype).bits <= width:
        return None
    if not value.numel():
        return Opinion("pass", "empty")
    if value.dtype is torch.uint64:
        return Opinion("unknown", "torch cannot compute the minimum and maximum of uint64")
    signed = torch.iinfo(value.dtype).min < 0
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    value = value.to(torch.int64)
    least, most = int(value.min()), int(value.max())
    if low <= least and most <= high:
        return Opinion("pass", f"all within {width} bits: {least} to {most}")
    return Opinion(
        "fail", f"{least} to {most} do not fit in {width} bits: they are silently truncated"
    )


def is_narrowed(given: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Are these the wanted integers, cut to 32 bits?"""
    if wanted.dtype is not torch.int64 or given.dtype is not torch.int64:
        return False
    if given.shape != wanted.shape:
        return False
    cut = wanted.to(torch.int32).to(torch.int64)
    return bool((given == cut).all()) and not bool((given == wanted).all())
