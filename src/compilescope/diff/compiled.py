"""The C source of the pass, compiled once on this machine by the C compiler that is there.

Libraries are kept in the user's cache folder, one for each kind of number. Where there is no
compiler, or it fails, there is no library, and torch's own operations do the work. It is never
torch's compiler: what is under test must not judge itself.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from compilescope.settings import cache_folder

_SOURCE = Path(__file__).with_name("pass.c")
_COMPILERS = ("cc", "gcc", "clang")
# Sums may be made in any order; NaN and infinity mean what they mean.
_SUMS = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno")
_FLAGS = ("-O3", "-shared", "-fPIC", *_SUMS)
_TUNINGS: tuple[tuple[str, ...], ...] = (
    ("-march=native", "-mprefer-vector-width=512"),
    ("-march=native",),
    (),
)
"""The first that the compiler takes."""
_LIMIT_S = 120
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
    wished = cache_folder() / "kernels"
    try:
        wished.mkdir(parents=True, exist_ok=True, mode=0o700)
        told = wished.stat()
        own = told.st_uid == os.getuid() and not told.st_mode & 0o022
        if own and os.access(wished, os.W_OK):
            return wished
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
