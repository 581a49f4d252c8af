"""The phases of compilations as torch logs them: kept by thread, written a compilation at a time.

What begins while nothing else is open in its thread is a compilation, or lies outside any. Once it
has ended, all within it becomes one event. Phases outside any compilation (helper threads,
autotuning at run time) wait for the next one or for the end: they alone must not begin a file
for a forked child.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from threading import get_ident
from typing import Any

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.sinks import Sink
from compilescope.record.bodies import CompilePhases
from compilescope.record.phases import SeenPhase, by_compilation, recorded
from compilescope.record.storms import compilation_number, frame_number

_MOST_KEPT = 1000
"""Phases of one thread, after which those that have ended are written. Chosen: memory in the user's
program against the number of events."""
_NOTED = (("cache_state", "cache "), ("kernel_name", "kernel "))
_LONGEST_DETAIL = 200
"""Letters. Chosen: names of kernels may be as long as their computation."""
_live: weakref.WeakSet[PhaseLog] = weakref.WeakSet()


class _ThreadPhases:
    """What one thread has logged and not yet written."""

    __slots__ = ("ident", "in_compilation", "kept", "last_ns", "stack")

    def __init__(self) -> None:
        self.ident = get_ident()
        self.stack: list[SeenPhase] = []
        self.kept: list[SeenPhase] = []
        # In order of their start. Its own thread alone appends; others take from the front.
        self.in_compilation = False
        self.last_ns = 0


class _ThreadLog(threading.local):
    """One for each thread, made when the thread first comes by."""

    def __init__(self, threads: list[_ThreadPhases]) -> None:
        self.log = _ThreadPhases()
        threads.append(self.log)


class PhaseLog:
    """The phases of one capture."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._threads: list[_ThreadPhases] = []
        self._local = _ThreadLog(self._threads)
        self._taking = threading.Lock()
        self._forked = False
        _live.add(self)

    def begin(self, name: str, time_ns: int, compile_id: str | None) -> None:
        log = self._local.log
        phase = SeenPhase(name, time_ns, len(log.stack), compile_id)
        log.stack.append(phase)
        log.kept.append(phase)
        log.last_ns = time_ns
        if compile_id is not None:
            log.in_compilation = True

    def end(self, name: str, time_ns: int, noted: dict[str, Any]) -> None:
        log = self._local.log
        stack = log.stack
        if not stack or (stack[-1].name != name and all(phase.name != name for phase in stack)):
            return  # It began before we came.
        log.last_ns = time_ns
        while stack[-1].name != name:
            # An error took it past its end, which is no later than that of what encloses it.
            inner = stack.pop()
            inner.end_ns, inner.unended = time_ns, True
        phase = stack.pop()
        phase.end_ns = time_ns
        for key, label in _NOTED if noted else ():
            if noted.get(key):
                phase.detail = f"{label}{noted[key]}"[:_LONGEST_DETAIL]
        if not stack and log.in_compilation:
            self._forked = False
            self._write_idle()
        elif len(log.kept) >= _MOST_KEPT:
            self._write(log, self._take_ended(log))

    def is_in(self, compile_id: str | None) -> bool:
        """Is this compilation the outermost phase of this thread? Then they are written with its
        end, which is near; another phase around it may go on for as long as the program."""
        stack = self._local.log.stack
        outer = stack[0].compile_id if stack else None
        # `0/3_1` is `0/3`, traced anew.
        return bool(outer and compile_id) and _compilation(outer) == _compilation(compile_id)

    def close(self) -> None:
        """Write what is left, and the phases that have no end as far as they are known."""
        try:
            at_work = sys._current_frames().keys() - {get_ident()}
            now = time.time_ns()
            for log in self._threads:
                for phase in log.stack:
                    phase.end_ns = now if log.ident in at_work else log.last_ns
                    phase.unended = True
                log.stack = []
            if not self._forked:
                self._write_idle()
        except Exception as error:  # The border of a hook.
            let_through(error)
            self._sink.fault("phases", error)

    def after_fork(self) -> None:
        """In the child: what the parent began is the parent's to write."""
        self._taking = threading.Lock()
        self._forked = True
        self._threads[:] = [self._local.log]
        log = self._local.log
        log.stack, log.kept, log.in_compilation = [], [], False

    def _write_idle(self) -> None:
        """Write what all threads have kept that are in no phase now."""
        for log in list(self._threads):
            if log.kept and not log.stack:
                self._write(log, self._take(log))

    def _take(self, log: _ThreadPhases) -> list[SeenPhase]:
        if not self._taking.acquire(blocking=False):
            return []  # Another thread is at it, or we interrupted ourselves: next time.
        try:
            stop = next((n for n, p in enumerate(log.kept) if p.end_ns is None), len(log.kept))
            taken = log.kept[:stop]
            del log.kept[:stop]
            log.in_compilation = bool(log.kept)
            return taken
        finally:
            self._taking.release()

    def _take_ended(self, log: _ThreadPhases) -> list[SeenPhase]:
        """From around open phases too; only in the thread whose log it is."""
        if not self._taking.acquire(blocking=False):
            return []
        try:
            taken = [phase for phase in log.kept if phase.end_ns is not None]
            log.kept[:] = [phase for phase in log.kept if phase.end_ns is None]
            return taken
        finally:
            self._taking.release()

    def _write(self, log: _ThreadPhases, taken: list[SeenPhase]) -> None:
        thread = None if log.ident == get_ident() else log.ident
        for outer, group in by_compilation(taken):
            self._sink.emit(CompilePhases(recorded(outer, group), thread), compile_id=outer)


def _compilation(compile_id: str | None) -> tuple[str, int]:
    return frame_number(compile_id), compilation_number(compile_id)


def _after_fork() -> None:
    for log in list(_live):
        log.after_fork()


os.register_at_fork(after_in_child=_after_fork)
