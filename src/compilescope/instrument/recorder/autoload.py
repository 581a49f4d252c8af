"""Begins to record in a process of the user's program, once it has imported torch.

Called by the code in `boot/`, which every Python process of the program runs at its start.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from compilescope.base.processes.interruptions import let_through
from compilescope.base.settings import Settings, read_settings

if TYPE_CHECKING:
    from compilescope.instrument.recorder.process_end import UncaughtException
    from compilescope.instrument.recorder.recorder import Recorder

_hooks = contextlib.ExitStack()
_begun = False


def begin() -> None:
    """Record this process, if it belongs to a run and is none of torch's own helpers."""
    global _begun
    settings = read_settings()
    if _begun or settings.run_dir is None or is_helper():
        return
    _begun = True
    from compilescope.instrument.recorder.journal import DiskJournal
    from compilescope.instrument.recorder.recorder import Recorder

    recorder = Recorder(DiskJournal(settings.run_dir))
    if os.getppid() == settings.launcher_pid:
        # The program itself leaves a record even if it never compiles; its children need not.
        recorder.start()
    watch_process(recorder, settings)


def watch_process(
    recorder: Recorder,
    settings: Settings,
    ended: Callable[[UncaughtException | None], None] | None = None,
) -> None:
    """Put the hooks on for the rest of this process, and have its end written.

    `ended` is called after that, also in forked children, with the exception that ended it.
    """
    from compilescope.instrument.recorder.stdin_source import know_stdin
    from compilescope.instrument.torchapi.hook import Watch
    from compilescope.instrument.torchapi.install import hook_into

    know_stdin()
    watch = Watch(
        recorder,
        ir=settings.ir,
        calls=settings.calls,
        time=settings.time,
        profile=settings.profile,
        failed=_failure_keeper(settings),
    )
    # Never closed: other atexit handlers may still compile.
    hook_into(watch, _hooks)
    _compile_for_the_program(settings)

    def write_end() -> None:
        if watch.counts is not None:
            watch.counts.write()
        if watch.versions is not None:
            watch.versions.write()
        if watch.timing is not None:
            watch.timing.write()
        if watch.profiler is not None:
            watch.profiler.close()
        if watch.phases is not None:
            watch.phases.close()
        raised = _uncaught(recorder)
        recorder.end(raised)
        if ended is not None:
            ended(raised)

    def end() -> None:
        # The program has ended: what is raised now could only be printed, with our lines.
        with contextlib.suppress(BaseException):
            write_end()

    atexit.register(end)
    _end_with_multiprocessing(recorder, end)


def _uncaught(recorder: Recorder) -> UncaughtException | None:
    from compilescope.instrument.recorder.process_end import uncaught

    try:
        return uncaught()
    except Exception as error:  # The border of a hook.
        let_through(error)
        recorder.fault("ending", error)
        return None


def _failure_keeper(settings: Settings) -> Callable[[BaseException], None] | None:
    """By name: who keeps failures builds on captures, and is not known here."""
    module, _, name = settings.failure_keeper.partition(":")
    if not module or settings.run_dir is None:
        return None
    folder = settings.run_dir

    def keep(error: BaseException) -> None:
        getattr(importlib.import_module(module), name)(folder, error)

    return keep


def _compile_for_the_program(settings: Settings) -> None:
    if settings.compile_names:
        from compilescope.instrument.torchapi.autocompile import compile_modules

        compile_modules(settings.compile_names, settings.compile_backend)


def is_helper() -> bool:
    """Inductor's compile workers and torchrun's agent run nothing of the user's."""
    words = getattr(sys, "orig_argv", sys.argv)
    if any("_inductor/compile_worker" in word.replace(os.sep, "/") for word in words):
        return True
    if words[1:3] == ["-m", "torch.distributed.run"]:
        return True
    return any(os.path.basename(word) == "torchrun" for word in words[1:2])


def _end_with_multiprocessing(recorder: Recorder, end: Callable[[], None]) -> None:
    """Forked children of multiprocessing skip atexit; its own finalizers do run."""
    from multiprocessing import parent_process, util

    def register(recorder: Recorder) -> None:
        util.Finalize(None, end, exitpriority=-100)

    util.register_after_fork(recorder, register)
    if parent_process() is not None:
        register(recorder)
