"""What a process of the user's program does when it has imported torch: begin to record.

Called by torch itself, through the entry point in `boot/`, or by the chained sitecustomize.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from compilescope.settings import Settings, read_settings

if TYPE_CHECKING:
    from compilescope.capture.ending import Raised
    from compilescope.capture.recorder import Recorder

_hooks = contextlib.ExitStack()
_begun = False


def begin() -> None:
    """Record this process, if it belongs to a run and is none of torch's own helpers."""
    global _begun
    settings = read_settings()
    if _begun or settings.run_dir is None or _is_helper():
        return
    _begun = True
    from compilescope.capture.journal import DiskJournal
    from compilescope.capture.recorder import Recorder
    from compilescope.torchapi.hook import Watch
    from compilescope.torchapi.install import hooked

    recorder = Recorder(DiskJournal(settings.run_dir))
    if os.getppid() == settings.launcher_pid:
        # The program itself leaves a record even if it never compiles; its children need not.
        recorder.start()
    watch = Watch(
        recorder,
        ir=settings.ir,
        calls=settings.calls,
        time=settings.time,
        planted_fault=settings.planted_fault,
        failed=_failure_keeper(settings),
    )
    # Never closed: other atexit handlers may still compile.
    _hooks.enter_context(hooked(watch))
    _compile_for_the_program(settings)

    def end() -> None:
        if watch.timing is not None:
            watch.timing.write()
        if watch.phases is not None:
            watch.phases.close()
        recorder.end(_uncaught(recorder))

    atexit.register(end)
    _end_with_multiprocessing(recorder, end)


def _uncaught(recorder: Recorder) -> Raised | None:
    from compilescope.capture.ending import uncaught

    try:
        return uncaught()
    except Exception as error:  # The border of a hook.
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
        from compilescope.torchapi.autocompile import compile_modules

        compile_modules(settings.compile_names, settings.compile_backend)


def _is_helper() -> bool:
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
