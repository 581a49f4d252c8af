"""Finds the small compiler's sources, builds its library with CMake, and keeps it for the user.

The library's folder is named by a hash of the sources and of the C++ compiler: another version of
either never meets an old library. It is built beside its place and moved there in one step, so that
nobody sees half of one; a lock keeps two processes from doing the same work.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from compilescope.errors import ToolError
from compilescope.settings import cache_folder, named_cxx, read_mini_settings

log = logging.getLogger(__name__)
_LIMIT_S = 600
"""For one command of the build. Chosen: minutes on a slow machine; more is a build that hangs."""
_LAST_LINES = 6
"""Of the errors. Chosen: what a message can show."""
_PACKAGE = Path(__file__).resolve().parents[2]


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


def find_cxx(wanted: str = "") -> str:
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
    compiler = find_cxx(cxx)
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
