"""Inside the user's program: writes each graph that goes to the backend to disk, as a record.

The program runs on as it would. What a backend raises is noted with the graph, and raised again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import torch

from compilescope.base.errors import ToolError
from compilescope.change.minify.graph.record import (
    FAILED,
    SKIPPED,
    STARTED,
    BackendSource,
    FailingGraph,
    Setting,
    Shown,
    read_record,
    write_record,
)
from compilescope.change.minify.script.embedded.failures import fingerprint
from compilescope.instrument.torchapi.compilation.current import (
    changed_settings,
    current_compile_id,
    current_contexts,
    is_restart,
)
from compilescope.instrument.torchapi.compilation.refusals import BackendRefusal
from compilescope.instrument.torchapi.repros.definitions import (
    Unwritable,
    UsedBackend,
    backend_definitions,
    used_backend,
)
from compilescope.instrument.torchapi.repros.graph_writer import (
    BackendCall,
    call_of,
    watched_backends,
    write_graph,
)

_MOST_GRAPHS = 200
"""Chosen: each is written with its numbers, and one is looked for."""


class Catcher:
    """Writes records into a folder, one sub-folder a graph."""

    def __init__(
        self,
        folder: Path,
        *,
        backend: BackendSource | None = None,
        options: tuple[str, ...] = (),
        eager: bool = False,
        most_bytes: int = 2 << 30,
    ) -> None:
        """`backend` takes the place of the program's own in the records; with `eager` the program
        itself runs without any. Beyond `most_bytes`, inputs are kept without their numbers."""
        self.folder = folder
        self._backend = backend
        self._options = options
        self._eager = eager
        self._bytes_left = most_bytes
        self._count = 0
        self._lock = threading.Lock()
        self.skipped: list[str] = []
        self._unkept: list[tuple[str | None, str]] = []

    @contextmanager
    def catching(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with watched_backends(self._watch):
            yield

    def _watch(self, call: BackendCall) -> Callable[..., Any]:
        home = self._caught(call, None)
        if self._eager:
            return call.module.forward  # type: ignore[no-any-return]
        started = self.folder / STARTED
        if home is not None:
            started.write_text(home.name, encoding="utf-8")
        try:
            compiled = call.compile()
        except Exception as error:
            if home is not None and not is_restart(error):
                self._mark(home, error)
            raise
        if home is None:
            return compiled
        return self._called(compiled, home)

    def _called(self, compiled: Callable[..., Any], home: Path) -> Callable[..., Any]:
        """A crash of the compiled code is one of its graph."""
        started = self.folder / STARTED

        def call(*args: Any) -> Any:
            started.write_text(home.name, encoding="utf-8")
            try:
                return compiled(*args)
            except Exception as error:
                self._mark(home, error)
                raise
            finally:
                started.unlink(missing_ok=True)

        started.unlink(missing_ok=True)
        return call

    def keep(self, call: BackendCall, error: Exception) -> None:
        """A failure that somebody else saw. Why it cannot be kept is noted with its compile id."""
        if self._caught(call, error) is None:
            self._unkept.append((current_compile_id(), self.skipped[-1]))
            (self.folder / SKIPPED).write_bytes(msgspec.json.encode(self._unkept))

    def _mark(self, home: Path, error: Exception) -> None:
        """The first graph that fails is the one to look at."""
        mark = self.folder / FAILED
        if mark.exists():
            return
        try:
            record = read_record(home)
            shown = shown_failure(error, record.setting)
            write_record(home, msgspec.structs.replace(record, shown=shown), {})
            mark.write_text(home.name, encoding="utf-8")
        except (OSError, ToolError) as problem:
            self._skip(str(problem))

    def _caught(self, call: BackendCall, error: Exception | None) -> Path | None:
        """A record of it; None where there can be none, and then the reason is kept."""
        with self._lock:
            number = self._count
            self._count += 1
        if number >= _MOST_GRAPHS:
            return self._skip(f"more than {_MOST_GRAPHS} graphs")
        try:
            record, values = self._record(call, error)
        except Unwritable as reason:
            return self._skip(str(reason))
        except Exception as fault:  # The border of a hook: the program goes on.
            return self._skip(f"{type(fault).__name__}: {fault}")
        home = self.folder / f"{number:04}"
        try:
            write_record(home, record, values)
        except OSError as problem:
            return self._skip(f"{home} cannot be written ({problem.strerror})")
        return home

    def _record(
        self, call: BackendCall, error: Exception | None
    ) -> tuple[FailingGraph, dict[str, Any]]:
        written = write_graph(call.module, call.inputs)
        source, options = self._backend, self._options
        if source is None:
            used = used_backend(call.compiler)
            source, options = source_of(used), used.options
        graph, values = self._affordable(written.graph, written.values)
        setting = Setting(
            backend=source,
            options=(*options, "dynamic=True") if written.loose else options,
            contexts=current_contexts(),
            settings=tuple(changed_settings()),
            backward=_wants_gradients(graph),
            model=call.model,
        )
        file, line = call.place
        shown = shown_failure(error, setting) if error is not None else UNKNOWN
        version = str(torch.__version__)
        place = (file, line, os.getpid(), current_compile_id())
        return FailingGraph(graph, setting, shown, version, *place), values

    def _affordable(self, graph: Any, values: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Numbers only as far as there is room; others are drawn at random."""
        needed = sum(value.numel() * value.element_size() for value in values.values())
        with self._lock:
            if needed <= self._bytes_left:
                self._bytes_left -= needed
                return graph, values
        inputs = tuple(
            msgspec.structs.replace(each, fill="random", saved="") if each.fill == "saved" else each
            for each in graph.inputs
        )
        return msgspec.structs.replace(graph, inputs=inputs), {}

    def _skip(self, reason: str) -> Path | None:
        self.skipped.append(reason)
        with suppress(OSError):
            (self.folder / SKIPPED).write_bytes(msgspec.json.encode(self.skipped))
        return None


UNKNOWN = Shown("difference", None, "Nothing is known about this graph yet.")


def source_of(used: UsedBackend) -> BackendSource:
    from compilescope.backends.mock.backend import MockBackend

    if isinstance(used.function, MockBackend) and used.function.configuration is not None:
        from compilescope.change.minify.violations.kinds import mock_source

        return mock_source(used.function.__name__, used.function.configuration)
    expression, code = backend_definitions(used)
    return BackendSource(
        expression=expression,
        name=used.name,
        imports=tuple(line for line in code.imports.values() if line),
        folders=tuple(code.folders),
        definitions=tuple(code.definitions),
    )


def shown_failure(error: BaseException, setting: Setting) -> Shown:
    found = fingerprint(error)  # type: ignore[no-untyped-call]
    kind, _, where = found
    of = f" of {setting.model}" if setting.model else ""
    first = str(error).strip().splitlines()
    return Shown(
        "failure",
        list(found),
        f"The backend {setting.backend.name} fails on this graph{of}: {kind}.",
        tuple(line for line in (*first[:3], f"Raised in {where}." if where else "") if line),
    )


def _wants_gradients(graph: Any) -> bool:
    asked = any(each.tensor is not None and each.tensor.grad for each in graph.inputs)
    return asked and torch.is_grad_enabled()


_kept: dict[Path, tuple[Catcher, set[tuple[str, ...]]]] = {}


def keep_failed(folder: Path, error: BaseException, most: int, most_bytes: int) -> None:
    """Put the graph that led to it aside; each error once, and only so many of them."""
    call = call_of(error)
    if call is None or isinstance(error, BackendRefusal):
        return
    catcher, seen = _kept.setdefault(folder, (Catcher(folder, most_bytes=most_bytes), set()))
    found = fingerprint(error)  # type: ignore[no-untyped-call]
    if found in seen or len(seen) >= most or not isinstance(error, Exception):
        return
    seen.add(found)
    folder.mkdir(parents=True, exist_ok=True)
    catcher.keep(call, error)
