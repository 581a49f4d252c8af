"""Turns what hooks see into events: gives them ids, times, ranks and epochs, and appends them.

Lives inside the user's program, so it never raises and never prints. A forked child begins a
file of its own with its first event; one that compiles nothing leaves none.
"""

from __future__ import annotations

import linecache
import os
import platform
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Iterable, Sequence

import torch

from compilescope.capture.cells import cell_names, text_with_cells, with_cells
from compilescope.capture.ending import Raised, told
from compilescope.capture.journal import Journal
from compilescope.model.artifacts import artifact_name
from compilescope.model.bodies import (
    Body,
    CompileFailed,
    GraphBreak,
    ProcessEnded,
    ProcessStarted,
    Recompile,
    SourceSeen,
    ToolFault,
)
from compilescope.model.event import Event
from compilescope.model.stack import Frame
from compilescope.settings import current_test, env_rank

_MOST_FAULTS = 20
"""Of one hook. One that always fails must not hide the faults of another."""
_LARGEST_SOURCE = 4_000_000
_live: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder:
    """The Sink of the hooks of one process."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.RLock()
        self._name: str | None = None
        self._sequence = 0
        self._epoch = 0
        self._faults: dict[str, int] = {}
        self._lost_artifacts = 0
        self._forked = False
        self._sources: set[str] = set()
        self._ended = False
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
    ) -> str:
        with self._lock:
            # Also after the end mark: a late atexit handler may still compile.
            self._begin()
            if isinstance(body, (GraphBreak, CompileFailed, Recompile)):
                self._keep_sources(stack)
            self._keep_sources(sources)
            return self._append(body, stack, compile_id)

    def artifact(self, text: str, kind: str) -> str:
        text = text_with_cells(text, cell_names())
        try:
            return self._journal.artifacts.put(text, kind)
        except OSError:
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
        except Exception:
            pass  # The third border: nobody is left to tell.

    def end(self, raised: Raised | None = None) -> None:
        """Write the end mark, with the exception that ends the process."""
        with self._lock:
            if self._ended or self._name is None:
                return
            lost = self._journal.lost + self._lost_artifacts
            if raised is None:
                self._append(ProcessEnded(lost, accelerator=_accelerator()))
            else:
                body = ProcessEnded(lost, raised.error, raised.message, _accelerator())
                self._append(body, raised.stack)
                told()
            self._ended = True

    def after_fork(self) -> None:
        """In the child: the parent's file is the parent's."""
        self._lock = threading.RLock()
        self._journal.close()
        self._name = None
        self._sequence = 0
        self._sources = set()
        self._forked = True

    def _begin(self) -> None:
        if self._name is not None:
            return
        self._name = self._journal.open(env_rank())
        self._append(
            ProcessStarted(
                argv=tuple(getattr(sys, "orig_argv", sys.argv)),
                python=platform.python_version(),
                torch=str(torch.__version__),
                parent_pid=os.getppid(),
                forked=self._forked,
                device=_device(),
            )
        )

    def _keep_sources(self, frames: Iterable[Frame]) -> None:
        """A report shows the lines around a place, long after the file has changed."""
        cells = cell_names()
        for frame in frames:
            # A cell that was run again has a new number, and the old file.
            name = cells.get(frame.file, frame.file)
            if name in self._sources or frame.origin not in ("user", "library"):
                continue
            self._sources.add(name)
            text = "".join(linecache.getlines(frame.file))
            if 0 < len(text) <= _LARGEST_SOURCE:
                self._append(SourceSeen(frame.file, self.artifact(text, "py")))

    def _append(
        self, body: Body, stack: Sequence[Frame] = (), compile_id: str | None = None
    ) -> str:
        cells = cell_names()
        event = Event(
            id=f"{self._name}.{self._sequence}",
            time_ns=time.time_ns(),
            pid=os.getpid(),
            rank=_rank(),
            thread=threading.get_ident(),
            epoch=self._epoch,
            compile_id=compile_id,
            test=current_test(),
            stack=with_cells(tuple(stack), cells),
            body=with_cells(body, cells),
        )
        self._sequence += 1
        self._journal.append(event)
        return event.id


def _rank() -> int:
    """The process group knows best; before there is one, torchrun's word."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return env_rank()


def _device() -> str:
    # Asking CUDA for a name would initialise it, which breaks programs that fork later.
    return "cuda" if torch.version.cuda else "cpu"


def _accelerator() -> str:
    """By name, where the program has used one: only then may it be asked."""
    try:
        used = torch.cuda.is_initialized() and torch.cuda.is_available()
        return torch.cuda.get_device_name() if used else ""
    except Exception:
        return ""  # A device that failed ends the program; it must not end our record of it.


def _after_fork() -> None:
    for recorder in list(_live):
        recorder.after_fork()


os.register_at_fork(after_in_child=_after_fork)
