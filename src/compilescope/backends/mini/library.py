"""The small compiler's C interface (cpp/src/c_api.h) for Python, and the library
behind it, which is built when it is first needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import json
import logging
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compilescope.base.errors import ToolError
from compilescope.base.package import PACKAGE
from compilescope.base.settings import cache_folder, named_cxx, read_mini_settings

_LIMIT_S = 600
"""For one command of the build. Chosen: minutes on a slow machine; more is a build that hangs."""
_LAST_LINES = 6
"""Of the errors. Chosen: what a message can show."""
_PACKAGE = Path(PACKAGE).resolve()
log = logging.getLogger(__name__)
VERSION = 1
"""Of the C interface and the text format that this file speaks."""
_lock = threading.Lock()
_loaded: dict[str, Library] = {}


class MiniError(Exception):
    """What the small compiler has against a graph, or why it could not make code of it."""


class Library:
    """The loaded library. One serves all threads."""

    def __init__(self, path: Path) -> None:
        self._c = ctypes.CDLL(str(path))
        _declare(self._c)
        if self._c.mini_version() != VERSION:
            raise OSError(f"{path} speaks version {self._c.mini_version()}, not {VERSION}")
        self.passes: tuple[str, ...] = tuple(_text(self._c.mini_passes()).split())

    def compile(self, graph: str, options: Mapping[str, str]) -> LibraryFunction:
        """Raises MiniError."""
        handle = self._c.mini_compile(graph.encode(), _options(options))
        if not handle:
            raise self._error()
        return LibraryFunction(self, handle)

    def _error(self) -> MiniError:
        return MiniError(_text(self._c.mini_error()) or "unknown error")


class LibraryFunction:
    """A compiled graph."""

    def __init__(self, library: Library, handle: int) -> None:
        self._library = library
        self._handle = handle
        self._run = library._c.mini_run
        self._free = library._c.mini_free

    def run(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Addresses of the first elements. Raises IndexError for an index out of range."""
        given, wanted = _pointers(len(inputs)), _pointers(len(outputs))
        if self._run(self._handle, given(*inputs), wanted(*outputs)):
            error = self._library._error()
            raise IndexError(str(error)) if "index" in str(error) else error

    @property
    def info(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(_text(self._library._c.mini_info(self._handle)))
        return found

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._free(self._handle)


def load_library(cxx: str = "") -> Library:
    """Built now where that has not been done. Raises ToolError."""
    with _lock:
        if cxx not in _loaded:
            _loaded[cxx] = _load(cxx)
        return _loaded[cxx]


def _load(cxx: str) -> Library:
    path = build_library(cxx)
    try:
        return Library(path)
    except (OSError, AttributeError) as error:
        # Cut short, from another machine, or of another version: it is made again, once.
        log.warning("compilescope_mini: %s can't be used (%s); building it again", path, error)
    path = build_library(cxx, anew=True)
    try:
        return Library(path)
    except (OSError, AttributeError) as error:
        raise ToolError(
            f"The small compiler was built, but can't be loaded: {error}.",
            hint=f"Remove {path.parent} and try again.",
        ) from error


def _declare(c: ctypes.CDLL) -> None:
    text, pointers = ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)
    for name, result, arguments in (
        ("mini_version", ctypes.c_int32, []),
        ("mini_error", text, []),
        ("mini_passes", text, []),
        ("mini_compile", ctypes.c_void_p, [text, text]),
        ("mini_run", ctypes.c_int32, [ctypes.c_void_p, pointers, pointers]),
        ("mini_free", None, [ctypes.c_void_p]),
        ("mini_info", text, [ctypes.c_void_p]),
    ):
        function = getattr(c, name)
        function.restype, function.argtypes = result, arguments


@functools.cache
def _pointers(count: int) -> type[ctypes.Array[ctypes.c_void_p]]:
    return ctypes.c_void_p * count


def _options(options: Mapping[str, str]) -> bytes:
    return "\n".join(f"{key}={value}" for key, value in options.items()).encode()


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


# Finds the small compiler's sources, builds its library with CMake, and keeps it for the user.
#
# The library's folder is named by a hash of the sources and of the C++ compiler: another version
# of either never meets an old library. It is built beside its place and moved there in one step,
# so that nobody sees half of one; a lock keeps two processes from doing the same work.


def source_folder() -> Path:
    """In an installed package it is a part of it; in a checkout it stands beside src/."""
    for folder in (_PACKAGE / "cpp", _PACKAGE.parents[1] / "cpp"):
        if (folder / "CMakeLists.txt").is_file():
            return folder
    raise ToolError(
        "The sources of the small compiler are missing from this installation.",
        hint="Reinstall compilescope.",
    )


def kernel_folder() -> Path:
    """Where the compiler keeps the kernels that it makes."""
    named = read_mini_settings().kernels
    return Path(named) if named else cache_folder() / "mini" / "kernels"


def library_name() -> str:
    if sys.platform == "win32":
        return "mini_capi.dll"
    return "libmini_capi.dylib" if sys.platform == "darwin" else "libmini_capi.so"


def _find_cxx(wanted: str = "") -> str:
    """The C++ compiler's path: the one named, $CXX, or the first that is found."""
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise ToolError(
                f"There is no C++ compiler {wanted!r}.",
                hint="Name one that is on PATH, or leave it out to use the first that is found.",
            )
        return found
    names = ["cl"] if sys.platform == "win32" else ["c++", "g++", "clang++"]
    for name in filter(None, [named_cxx(), *names]):
        found = shutil.which(name)
        if found is not None:
            return found
    raise ToolError(
        "compilescope_mini needs a C++ compiler, and there is none on PATH.",
        hint="Install one (Debian, Ubuntu: apt install g++; macOS: xcode-select --install).",
    )


def build_library(cxx: str = "", *, anew: bool = False) -> Path:
    """The library, built now if that has not been done. `anew`: also where there is one."""
    sources = source_folder()
    compiler = _find_cxx(cxx)
    place = cache_folder() / "mini" / _identity(sources, compiler) / library_name()
    if place.is_file() and not anew:
        return place
    cmake = shutil.which("cmake")
    if cmake is None:
        raise ToolError(
            "compilescope_mini is built with CMake, which is not on PATH.",
            hint="Install it (Debian, Ubuntu: apt install cmake; or: pip install cmake).",
        )
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.parent / "lock"):
            if anew or not place.is_file():  # Somebody else may have built it meanwhile.
                _build(cmake, compiler, sources, place)
    except OSError as error:
        raise _unwritable(error, place.parent) from error
    return place


def _identity(sources: Path, compiler: str) -> str:
    found = hashlib.sha256()
    parts = [sources / "CMakeLists.txt", *(sources / "src").rglob("*")]
    for path in sorted([*parts, *(sources / "cmake").rglob("*")]):
        if path.is_file():
            found.update(f"{path.relative_to(sources).as_posix()}\0".encode())
            found.update(path.read_bytes())
    found.update(f"{compiler}\0{_version(compiler)}\0{platform.machine()}".encode())
    return found.hexdigest()[:20]


def _version(compiler: str) -> str:
    try:
        shown = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return shown.stdout + shown.stderr


def _build(cmake: str, compiler: str, sources: Path, place: Path) -> None:
    log.warning("compilescope_mini: building the small compiler, once for this machine (20 s)")
    with tempfile.TemporaryDirectory(prefix=".build-", dir=place.parent) as made:
        configure = [cmake, "-S", str(sources), "-B", made, "-DCMAKE_BUILD_TYPE=Release"]
        # It is the code that it generates that has to be fast; itself, it should be built soon.
        if sys.platform != "win32":
            configure += ["-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"]
        configure += [f"-DCMAKE_CXX_COMPILER={compiler}"]
        configure += ["-DMINI_WERROR=OFF", "-DMINI_TESTS=OFF", "-DMINI_APPS=OFF"]
        _call(configure)
        jobs = str(min(8, os.cpu_count() or 1))
        _call([cmake, "--build", made, "--config", "Release", "--target", "mini_capi", "-j", jobs])
        built = next(Path(made).rglob(library_name()), None)
        if built is None:
            raise ToolError(
                f"The build of the small compiler made no {library_name()}.",
                hint=f"Its sources are in {sources}.",
            )
        os.replace(built, place)


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT_S, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(
            f"Building the small compiler took more than {_LIMIT_S} seconds.",
            hint=f"The command was: {' '.join(command)}",
        ) from error
    if done.returncode == 0:
        return
    said = f"{done.stdout}\n{done.stderr}"
    too_large = -getattr(signal, "SIGXFSZ", 0)
    if done.returncode == too_large or "no space left" in said.lower():
        raise _no_space(cache_folder())
    lines = [line for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()] or lines
    shown = "\n".join(errors[:_LAST_LINES])
    raise ToolError(
        f"The small compiler could not be built: the command failed with status "
        f"{done.returncode}.\n{shown}",
        hint=f"The command was: {' '.join(command)}",
    )


def _no_space(folder: Path) -> ToolError:
    return ToolError(
        f"The disk is full: the small compiler can't be built in {folder}.",
        hint="Free some space, or set XDG_CACHE_HOME to another folder.",
    )


def _unwritable(error: OSError, folder: Path) -> ToolError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return _no_space(folder)
    return ToolError(
        f"The small compiler can't be built in {folder}: {error.strerror or error}.",
        hint="Set XDG_CACHE_HOME to a folder that you can write to.",
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; where files can't be locked, the last to finish wins, unharmed."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("w") as file:
        with contextlib.suppress(OSError):  # Some network file systems have no locks.
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
