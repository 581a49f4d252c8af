"""The same pass by a compiled loop, over several threads: for large tensors on the host.

Gives None where it cannot be done so, and then torch's own operations do it.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from compilescope.diff.compiled import find_pass
from compilescope.diff.config import ComparisonConfig
from compilescope.diff.pairs import Pair, stretches
from compilescope.diff.stretches import Rules, rescale, walk
from compilescope.diff.tally import POSITIONS, Profile, Tally

_WORTH_BUILDING = 1 << 22
"""Below so many elements torch is done sooner than a compiler."""
_WORTH_CALLING = 1 << 10
_BLOCK = 1024
_STRETCH = 1 << 18
_SUMS = (
    *("sum_abs", "sum_square", "sum_rel", "dot", "square_reference", "square_test", "sum_ulp"),
    *("max_abs", "max_rel", "max_ulp", "largest_reference"),
)
_COUNTS = (
    *("finite", "differing", "mismatched", "relative", "appeared", "nan_reference", "nan_test"),
    *("nan_both", "inf_reference", "inf_test", "inf_both", "disagreeing"),
)
_Part = tuple[int, torch.Tensor, torch.Tensor]


class _Found(ctypes.Structure):
    """The order of the fields is that of the structure in pass.c."""

    _fields_ = (
        *((name, ctypes.c_double) for name in _SUMS),
        *((name, ctypes.c_int64) for name in (*_COUNTS, "odd", "overflown", "rel_at")),
        ("bad_at", ctypes.c_int64 * POSITIONS),
        ("odd_at", ctypes.c_int64 * POSITIONS),
    )


class _Asked(ctypes.Structure):
    """Likewise."""

    _fields_ = (
        ("atol", ctypes.c_double),
        ("rtol", ctypes.c_double),
        *((name, ctypes.c_int64) for name in ("equal_nan", "keep", "dims", "base")),
        ("worst", ctypes.POINTER(ctypes.c_double)),
        ("worst_at", ctypes.POINTER(ctypes.c_int64)),
        ("layout", ctypes.POINTER(ctypes.c_int64)),
        ("totals", ctypes.POINTER(ctypes.c_double)),
        ("wrongs", ctypes.POINTER(ctypes.c_double)),
        ("largest", ctypes.POINTER(ctypes.c_int64)),
    )


def tally_of(pair: Pair, rules: Rules, config: ComparisonConfig) -> Tally:
    """All of the pair, by the fastest way there is."""
    found = fused_walk(pair, rules, config.threads) if config.fused else None
    tally = found if found is not None else walk(pair, rules)
    rescale(pair, tally)
    return tally


def fused_walk(pair: Pair, rules: Rules, threads: int | None = None) -> Tally | None:
    """All of the pair, or None."""
    one, other = pair.reference, pair.test
    if one.dtype != other.dtype or (one.device.type, other.device.type) != ("cpu", "cpu"):
        return None
    # A subclass may have no memory of its own to point at.
    plain = {torch.Tensor, torch.nn.Parameter}
    if one.numel() < _WORTH_CALLING or not {type(one), type(other)} <= plain:
        return None
    add = find_pass(one.dtype, build=one.numel() >= _WORTH_BUILDING)
    return None if add is None else _Walk(pair, rules, add).run(threads or torch.get_num_threads())


class _Walk:
    def __init__(self, pair: Pair, rules: Rules, add: Any) -> None:
        self._pair = pair
        self._rules = rules
        self._add = add

    def run(self, threads: int) -> Tally | None:
        pair = self._pair
        shares: list[Iterable[_Part]]
        if pair.is_flat:
            one, other = pair.reference.reshape(-1), pair.test.reshape(-1)
            shares = [
                [(begin, one[begin:end], other[begin:end])]
                for begin, end in _shares(one.numel(), threads)
            ]
        else:
            boxes = stretches(pair.shape, _STRETCH)
            shares = [((place, *pair.stretch(box)) for place, box in boxes)]
        with ThreadPoolExecutor(len(shares)) as pool:
            states = list(pool.map(self._walk, shares))
        tally = Tally(profiles=self._profiles())
        for state in states:
            # A difference that float64 cannot hold: torch's operations tell more of it.
            if state.found.overflown:
                return None
            tally.merge(state.tally(), self._rules.worst)
        return tally

    def _walk(self, parts: Iterable[_Part]) -> _State:
        state = _State(self._profiles(), self._rules)
        for place, one, other in parts:
            state.asked.base = place
            self._add(
                ctypes.c_void_p(one.data_ptr()),
                ctypes.c_void_p(other.data_ptr()),
                ctypes.c_int64(one.numel()),
                ctypes.byref(state.asked),
                ctypes.byref(state.found),
            )
        return state

    def _profiles(self) -> list[Profile]:
        return [Profile.empty(size, self._rules.bins) for size in self._pair.shape]


class _State:
    """What one thread adds up."""

    def __init__(self, profiles: list[Profile], rules: Rules) -> None:
        self._profiles = profiles
        entries = sum(len(profile.total) for profile in profiles)
        layout = _layout(profiles)
        self.found = _Found()
        self._worst = (ctypes.c_double * rules.worst)()
        self._worst_at = (ctypes.c_int64 * rules.worst)()
        self._layout = (ctypes.c_int64 * len(layout))(*layout)
        self._totals = (ctypes.c_double * entries)()
        self._wrongs = (ctypes.c_double * entries)()
        self._largest = (ctypes.c_int64 * entries)()
        self.asked = _Asked(
            *rules.tolerance,
            rules.equal_nan,
            rules.worst,
            len(profiles),
            0,
            self._worst,
            self._worst_at,
            self._layout,
            self._totals,
            self._wrongs,
            self._largest,
        )

    def tally(self) -> Tally:
        found = self.found
        tally = Tally(**{name: getattr(found, name) for name in (*_SUMS, *_COUNTS)})
        tally.count = found.finite + found.odd
        worst = zip(self._worst, self._worst_at, strict=True)
        tally.worst = [(error, place) for error, place in worst if error > 0]
        if found.max_rel > 0:
            tally.worst_relative = (found.max_rel, found.rel_at)
        tally.disagreements = list(found.bad_at)[: found.disagreeing]
        tally.nonfinite = list(found.odd_at)[: found.odd]
        tally.profiles = list(self._told())
        return tally

    def _told(self) -> Iterator[Profile]:
        largest = ctypes.cast(self._largest, ctypes.POINTER(ctypes.c_double))
        first = 0
        for profile in self._profiles:
            end = first + len(profile.total)
            wrongs = [int(count) for count in self._wrongs[first:end]]
            peaks = largest[first:end]
            yield Profile(profile.size, self._totals[first:end], peaks, wrongs, profile.width)
            first = end


def _layout(profiles: list[Profile]) -> list[int]:
    """For each dimension: stride, size, places in an entry, first entry."""
    found: list[int] = []
    stride = 1
    last = sum(len(profile.total) for profile in profiles)
    for profile in reversed(profiles):
        last -= len(profile.total)
        found = [stride, profile.size, profile.width, last, *found]
        stride *= profile.size
    return found


def _shares(count: int, threads: int) -> list[tuple[int, int]]:
    """Whole blocks for each thread."""
    blocks = -(-count // _BLOCK)
    threads = max(1, min(threads, blocks))
    ends = [blocks * number // threads * _BLOCK for number in range(threads + 1)]
    return [(begin, min(end, count)) for begin, end in itertools.pairwise(ends)]
