"""The small compiler's C interface (cpp/src/c_api.h) for Python."""

from __future__ import annotations

import ctypes
import functools
import json
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compilescope.backends.mini.library_build import build_library
from compilescope.errors import ToolError

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
        self.path = path
        self._c = ctypes.CDLL(str(path))
        _declare(self._c)
        if self._c.mini_version() != VERSION:
            raise OSError(f"{path} speaks version {self._c.mini_version()}, not {VERSION}")
        self.passes: tuple[str, ...] = tuple(_text(self._c.mini_passes()).split())
        self.operators: tuple[str, ...] = tuple(_text(self._c.mini_operators()).split())

    def compile(self, graph: str, options: Mapping[str, str]) -> Function:
        """Raises MiniError."""
        handle = self._c.mini_compile(graph.encode(), _options(options))
        if not handle:
            raise self._error()
        return Function(self, handle)

    def compile_batch(self, graphs: Sequence[str], options: Mapping[str, str]) -> list[Function]:
        """Many graphs by one call of the machine's compiler; all or none."""
        texts = (ctypes.c_char_p * len(graphs))(*(graph.encode() for graph in graphs))
        handles = (ctypes.c_void_p * len(graphs))()
        if self._c.mini_compile_batch(texts, len(graphs), _options(options), handles):
            raise self._error()
        return [Function(self, handle) for handle in handles if handle is not None]

    def _error(self) -> MiniError:
        return MiniError(_text(self._c.mini_error()) or "unknown error")


class Function:
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

    @property
    def description(self) -> str:
        """For people: graphs before and after each pass, and the generated source."""
        return _text(self._library._c.mini_describe(self._handle))

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
        ("mini_operators", text, []),
        ("mini_compile", ctypes.c_void_p, [text, text]),
        (
            "mini_compile_batch",
            ctypes.c_int32,
            [ctypes.POINTER(text), ctypes.c_int32, text, pointers],
        ),
        ("mini_run", ctypes.c_int32, [ctypes.c_void_p, pointers, pointers]),
        ("mini_free", None, [ctypes.c_void_p]),
        ("mini_info", text, [ctypes.c_void_p]),
        ("mini_describe", text, [ctypes.c_void_p]),
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
