"""Turns what hooks see into events: gives them ids, times, ranks and epochs, and appends them.

Lives inside the user's program, so it never raises and never prints. A forked child begins a
file of its own with its first event; one that compiles nothing leaves none.

A notebook's kernel compiles each cell under the name of a file that never exists; only IPython
knows which cell it is, and only while it runs. The record names such code as IPython's own prompt
does: `<ipython-input-3-...>`.
"""

from __future__ import annotations

import linecache
import os
import platform
import sys
import threading
import traceback
import weakref
from collections.abc import Iterable, Mapping, Sequence

# By name: a program may put others in their place, as tests do with fakes; it means its own calls.
from os import getpid
from pathlib import PurePath
from threading import get_ident
from time import time_ns
from typing import Any, TypeVar

import msgspec
import torch

from compilescope.base.processes.interruptions import let_through
from compilescope.base.settings import current_test, env_rank
from compilescope.instrument.recorder.journal import Journal
from compilescope.instrument.recorder.process_end import UncaughtException, told
from compilescope.instrument.torchapi.compilation.settings import compile_arguments
from compilescope.instrument.torchapi.times.memory import memory_taken
from compilescope.record.artifacts import artifact_name
from compilescope.record.bodies import (
    Body,
    CompileFailed,
    GraphBreak,
    ProcessEnded,
    ProcessStarted,
    Recompile,
    SourceSeen,
    ToolFault,
)
from compilescope.record.event import Event
from compilescope.record.stack import Frame

V = TypeVar("V")


def cell_names() -> dict[str, str]:
    """File -> the name under which the cell is recorded; empty outside of IPython.

    IPython 8 and 9 keep the numbers in a private table; without it cells keep their files' names.
    """
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return {}
    current = getattr(ipython, "get_ipython", None)
    shell = current() if current is not None else None
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", None)
    if not isinstance(numbers, dict):
        return {}
    return {
        file: _name(file, number)
        for file, number in list(numbers.items())
        if isinstance(number, int) and number > 0 and not file.startswith("<")
    }


def _name(file: str, number: int) -> str:
    return f"<ipython-input-{number}-{PurePath(file).stem}>"


def with_cells(value: V, names: Mapping[str, str]) -> V:
    """The same, with cells named wherever it names a file."""
    return _named(value, names) if names else value


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, (tuple, list)):
        return type(value)(_named(each, names) for each in value)
    if isinstance(value, dict):
        return {key: _named(each, names) for key, each in value.items()}
    if isinstance(value, msgspec.Struct):
        old = {name: getattr(value, name) for name in value.__struct_fields__}
        new = {name: _named(each, names) for name, each in old.items()}
        changed = {name: each for name, each in new.items() if each != old[name]}
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def text_with_cells(text: str, names: Mapping[str, str]) -> str:
    """Likewise for a text that torch or a graph's printer wrote."""
    for file, name in names.items():
        text = text.replace(file, name)
    return text


_HAS_GROUPS = torch.distributed.is_available()
_MOST_FAULTS = 20
"""Of one hook. Chosen: one that always fails must not hide the faults of another."""
_LARGEST_SOURCE = 4_000_000
"""Letters of one file. Chosen: a source written by hand is far shorter, and a run keeps each."""
_live: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder:
    """The Sink of the hooks of one process."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.RLock()
        self._name: str | None = None
        self._started = False
        """Is the first event written? The program may interrupt us before that."""
        self._sequence = 0
        self._epoch = 0
        self._faults: dict[str, int] = {}
        self._lost_artifacts = 0
        self._forked = False
        self._sources: set[str] = set()
        self._ended = False
        self._followed: str | None = None
        """The compilation of the last event, where it said that more follows at once."""
        self._rank = 0
        self._test: str | None = None
        _live.add(self)

    def start(self) -> None:
        """Write the first event, so that a program that never compiles leaves a record too."""
        with self._lock:
            self._begin()

    def emit(
        self,
        body: Body,
        stack: Sequence[Frame] = (),
        compile_id: str | None = None,
        sources: Iterable[Frame] = (),
        more: bool = False,
    ) -> str:
        with self._lock:
            # Also after the end mark: a late atexit handler may still compile.
            self._begin()
            if stack and isinstance(body, (GraphBreak, CompileFailed, Recompile)):
                self._keep_sources(stack)
            if sources:
                self._keep_sources(sources)
            return self._append(body, stack, compile_id, more)

    def artifact(self, text: str, kind: str) -> str:
        text = text_with_cells(text, cell_names())
        try:
            with self._lock:
                self._begin()  # Short texts go into the file of the events.
            return self._journal.artifacts.put(text, kind)
        except OSError as error:
            let_through(error)  # TimeoutError is one, and what handlers of alarms raise.
            # A full disk: the event still tells that there was such a text.
            self._lost_artifacts += 1
            return artifact_name(text, kind)

    def new_epoch(self) -> None:
        self._epoch += 1

    def fault(self, where: str, error: BaseException) -> None:
        """A hook of ours failed. Say so in the record, and let the program go on."""
        try:
            self._faults[where] = self._faults.get(where, 0) + 1
            if self._faults[where] <= _MOST_FAULTS:
                words = "".join(traceback.format_exception(error))[-4000:]
                self.emit(ToolFault(where, f"{type(error).__name__}: {error}", words))
        except Exception as another:
            let_through(another)  # Else: the third border, where nobody is left to tell.

    def end(self, raised: UncaughtException | None = None) -> None:
        """Write the end mark, with the exception that ends the process."""
        with self._lock:
            if self._ended or self._name is None:
                return
            lost = self._journal.lost + self._lost_artifacts
            body = ProcessEnded(lost, accelerator=_accelerator(), memory=memory_taken())
            if raised is None:
                self._append(body)
            else:
                body = msgspec.structs.replace(body, error=raised.error, message=raised.message)
                self._append(body, raised.stack)
                told()
            self._ended = True

    def after_fork(self) -> None:
        """In the child: the parent's file is the parent's."""
        self._lock = threading.RLock()
        self._journal.close()
        self._name = None
        self._started = False
        self._sequence = 0
        self._sources = set()
        self._forked = True

    def _begin(self) -> None:
        if self._started:
            return
        if self._name is None:
            self._name = self._journal.open(env_rank())
        self._append(
            ProcessStarted(
                argv=tuple(getattr(sys, "orig_argv", sys.argv)),
                python=platform.python_version(),
                torch=str(torch.__version__),
                parent_pid=os.getppid(),
                forked=self._forked,
                device=_device(),
                compile_arguments=compile_arguments(),
            )
        )
        self._started = True

    def _keep_sources(self, frames: Iterable[Frame]) -> None:
        """A report shows the lines around a place, long after the file has changed."""
        cells = cell_names()
        for frame in frames:
            # A cell that was run again has a new number, and the old file.
            name = cells.get(frame.file, frame.file)
            if name in self._sources or frame.origin not in ("user", "library"):
                continue
            text = "".join(linecache.getlines(frame.file))
            if 0 < len(text) <= _LARGEST_SOURCE:
                self._append(SourceSeen(frame.file, self.artifact(text, "py")), more=True)
            self._sources.add(name)

    def _append(
        self,
        body: Body,
        stack: Sequence[Frame] = (),
        compile_id: str | None = None,
        more: bool = False,
    ) -> str:
        if compile_id is None or compile_id != self._followed:
            # To ask takes longer than to write: what is told at once is told of one moment.
            self._rank, self._test = _rank(), current_test()
        self._followed = compile_id if more else None
        cells = cell_names()
        event = Event(
            id=f"{self._name}.{self._sequence}",
            time_ns=time_ns(),
            pid=getpid(),
            rank=self._rank,
            thread=get_ident(),
            epoch=self._epoch,
            compile_id=compile_id,
            test=self._test,
            stack=with_cells(tuple(stack), cells),
            body=with_cells(body, cells),
        )
        self._sequence += 1
        self._journal.append(event, more)
        return event.id


def _rank() -> int:
    """The process group knows best; before there is one, torchrun's word."""
    if _HAS_GROUPS and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return env_rank()


def _device() -> str:
    # Asking CUDA for a name would initialise it, which breaks programs that fork later.
    return "cuda" if torch.version.cuda else "cpu"


def _accelerator() -> str:
    """By name, where the program has used one: only then may it be asked."""
    try:
        used = torch.cuda.is_initialized() and torch.cuda.is_available()
        return torch.cuda.get_device_name() if used else ""
    except Exception as error:
        let_through(error)
        return ""  # A device that failed ends the program; it must not end our record of it.


def _after_fork() -> None:
    for recorder in list(_live):
        recorder.after_fork()


os.register_at_fork(after_in_child=_after_fork)
