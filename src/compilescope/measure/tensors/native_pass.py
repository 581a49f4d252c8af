"""The pass of `chunked_pass` as a compiled C loop, over several threads: for large CPU tensors.

The loop (native_pass.c) is compiled once on this machine, for each kind of number, by the C
compiler that is there, and kept in the user's cache folder. Where there is no compiler, or it
fails, torch's own operations do the work. It is never torch's compiler: what is under test must not
judge itself.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from compilescope.base.settings import cache_folder
from compilescope.measure.tensors.chunked_pass import (
    POSITIONS,
    ErrorTally,
    Profile,
    Rules,
    rescale,
    walk,
)
from compilescope.measure.tensors.pairs import TensorPair, chunks
from compilescope.measure.tensors.tolerances import ComparisonConfig

_WORTH_BUILDING = 1 << 22
"""Below so many elements torch is done sooner than a compiler. Chosen: building takes up to a
second (docs/inside/numbers.md), and only once for a dtype."""
_WORTH_CALLING = 1 << 10
"""Below so many elements the call costs more than the loop saves. Chosen."""
_BLOCK = 1024
"""As in native_pass.c: no thread begins within a block."""
_CHUNK = 1 << 18
"""Elements of tensors that do not lie flat: copied, and still in the cache when the loop reads
them. Chosen: a mebibyte of float32."""
_SUMS = (
    *("sum_abs", "sum_square", "sum_rel", "dot", "square_reference", "square_test", "sum_ulp"),
    *("max_abs", "max_rel", "max_ulp", "largest_reference"),
)
_COUNTS = (
    *("finite", "differing", "mismatched", "relative", "appeared", "nan_reference", "nan_test"),
    *("nan_both", "inf_reference", "inf_test", "inf_both", "disagreeing"),
)
_Part = tuple[int, torch.Tensor, torch.Tensor]


class _PassSums(ctypes.Structure):
    """The order of the fields is that of the structure in native_pass.c."""

    _fields_ = (
        *((name, ctypes.c_double) for name in _SUMS),
        *((name, ctypes.c_int64) for name in (*_COUNTS, "odd", "overflown", "rel_at")),
        ("bad_at", ctypes.c_int64 * POSITIONS),
        ("odd_at", ctypes.c_int64 * POSITIONS),
    )


class _Request(ctypes.Structure):
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


def tally_of(pair: TensorPair, rules: Rules, config: ComparisonConfig) -> ErrorTally:
    """All of the pair, by the fastest way there is."""
    found = native_walk(pair, rules, config.threads) if config.fused else None
    tally = found if found is not None else walk(pair, rules)
    rescale(pair, tally)
    return tally


def native_walk(pair: TensorPair, rules: Rules, threads: int | None = None) -> ErrorTally | None:
    """All of the pair, or None."""
    one, other = pair.reference, pair.test
    if one.dtype != other.dtype or (one.device.type, other.device.type) != ("cpu", "cpu"):
        return None
    # A subclass may have no memory of its own to point at.
    plain = {torch.Tensor, torch.nn.Parameter}
    if one.numel() < _WORTH_CALLING or not {type(one), type(other)} <= plain:
        return None
    add = find_pass(one.dtype, build=one.numel() >= _WORTH_BUILDING)
    return (
        None
        if add is None
        else _NativeWalk(pair, rules, add).run(threads or torch.get_num_threads())
    )


class _NativeWalk:
    def __init__(self, pair: TensorPair, rules: Rules, add: Any) -> None:
        self._pair = pair
        self._rules = rules
        self._add = add

    def run(self, threads: int) -> ErrorTally | None:
        pair = self._pair
        shares: list[Iterable[_Part]]
        if pair.is_flat:
            one, other = pair.reference.reshape(-1), pair.test.reshape(-1)
            shares = [
                [(begin, one[begin:end], other[begin:end])]
                for begin, end in _shares(one.numel(), threads)
            ]
        else:
            boxes = chunks(pair.shape, _CHUNK)
            shares = [((place, *pair.chunk(box)) for place, box in boxes)]
        with ThreadPoolExecutor(len(shares)) as pool:
            states = list(pool.map(self._walk, shares))
        tally = ErrorTally(profiles=self._profiles())
        for state in states:
            # A difference that float64 cannot hold: torch's operations tell more of it.
            if state.found.overflown:
                return None
            tally.merge(state.tally(), self._rules.worst)
        return tally

    def _walk(self, parts: Iterable[_Part]) -> _ThreadSums:
        state = _ThreadSums(self._profiles(), self._rules)
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


class _ThreadSums:
    """What one thread adds up."""

    def __init__(self, profiles: list[Profile], rules: Rules) -> None:
        self._profiles = profiles
        entries = sum(len(profile.total) for profile in profiles)
        layout = _layout(profiles)
        self.found = _PassSums()
        self._worst = (ctypes.c_double * rules.worst)()
        self._worst_at = (ctypes.c_int64 * rules.worst)()
        self._layout = (ctypes.c_int64 * len(layout))(*layout)
        self._totals = (ctypes.c_double * entries)()
        self._wrongs = (ctypes.c_double * entries)()
        self._largest = (ctypes.c_int64 * entries)()
        self.asked = _Request(
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

    def tally(self) -> ErrorTally:
        found = self.found
        tally = ErrorTally(**{name: getattr(found, name) for name in (*_SUMS, *_COUNTS)})
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


_SOURCE = Path(__file__).with_name("native_pass.c")
_COMPILERS = ("cc", "gcc", "clang")
# Sums may be made in any order; NaN and infinity mean what they mean.
_SUM_FLAGS = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno")
_FLAGS = ("-O3", "-shared", "-fPIC", *_SUM_FLAGS)
_TUNINGS: tuple[tuple[str, ...], ...] = (
    ("-march=native", "-mprefer-vector-width=512"),
    ("-march=native",),
    (),
)
"""The first that the compiler takes."""
_LIMIT_S = 120
"""Chosen: a compiler needs less than a second; past this torch's own operations are used."""
_KINDS = {
    torch.float32: "FLOATS(float, int32_t, INT32_MIN, from_f32)",
    torch.float64: "FLOATS(double, int64_t, INT64_MIN, from_f64)",
    torch.float16: "FLOATS(int16_t, int16_t, INT16_MIN, from_f16)",
    torch.bfloat16: "FLOATS(int16_t, int16_t, INT16_MIN, from_bf16)",
    torch.complex64: "COMPLEX(float, int32_t, INT32_MIN)",
    torch.complex128: "COMPLEX(double, int64_t, INT64_MIN)",
    torch.int8: "WHOLE(int8_t, 0, 0.0)",
    torch.int16: "WHOLE(int16_t, 0, 0.0)",
    torch.int32: "WHOLE(int32_t, 0, 0.0)",
    torch.int64: "WHOLE(int64_t, 0, 0.0)",
    torch.uint8: "WHOLE(uint8_t, 0, 0.0)",
    torch.bool: "WHOLE(uint8_t, 0, 0.0)",
    torch.uint16: "WHOLE(uint16_t, 0, 0.0)",
    torch.uint32: "WHOLE(uint32_t, 0, 0.0)",
    torch.uint64: "WHOLE(int64_t, INT64_MIN, 0x1p63)",
}
log = logging.getLogger(__name__)


def find_pass(dtype: torch.dtype, *, build: bool) -> Any:
    """The compiled function for a dtype, or None; `build`: is it worth compiling now?"""
    instance = _KINDS.get(dtype)
    compiler = _compiler()
    if instance is None or compiler is None:
        return None
    path = _folder() / f"{_key(instance, compiler)}.so"
    if not build and not path.exists():
        return None
    return _load(path, instance, compiler)


@functools.cache
def _load(path: Path, instance: str, compiler: str) -> Any:
    try:
        if not path.exists():
            _build(path, instance, compiler)
        found = ctypes.CDLL(str(path)).add
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("No compiled pass; using torch operations: %s", error)
        return None
    found.restype = None
    return found


def _build(path: Path, instance: str, compiler: str) -> None:
    """Under another name first: other processes may build the same at the same time."""
    handle, name = tempfile.mkstemp(".so", dir=path.parent)
    os.close(handle)
    command = [compiler, *_FLAGS, f"-DINSTANCE={instance}", str(_SOURCE), "-o", name, "-lm"]
    try:
        for more in _TUNINGS:
            done = subprocess.run(
                [*command, *more], capture_output=True, text=True, timeout=_LIMIT_S, check=False
            )
            if done.returncode == 0:
                os.replace(name, path)
                return
        raise OSError(f"{compiler} failed: {done.stderr.strip()[-500:]}")
    finally:
        Path(name).unlink(missing_ok=True)


@functools.cache
def _compiler() -> str | None:
    if sys.platform == "win32" or sys.byteorder != "little":
        return None
    return next((found for found in map(shutil.which, _COMPILERS) if found), None)


@functools.cache
def _key(instance: str, compiler: str) -> str:
    parts = (_SOURCE.read_text(), repr((_FLAGS, _TUNINGS)), instance, compiler, _processor())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _processor() -> str:
    """What the library is made for: a home folder may be shared by different machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor()]
    wanted = ("flags", "Features", "model name", "CPU part")
    return "\n".join(sorted({platform.machine(), *(x for x in lines if x.startswith(wanted))}))


@functools.cache
def _folder() -> Path:
    """One that nobody else can write to: what lies there is run. A new one for this process where
    the user's cache cannot be used."""
    cached = cache_folder() / "kernels"
    try:
        cached.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = cached.stat()
        own = status.st_uid == os.getuid() and not status.st_mode & 0o022
        if own and os.access(cached, os.W_OK):
            return cached
    except OSError:
        pass
    return _own_folder()


@functools.cache
def _own_folder() -> Path:
    found = tempfile.TemporaryDirectory(prefix="compilescope-")
    _KEPT.append(found)
    return Path(found.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
"""Removed at the end of the process."""
