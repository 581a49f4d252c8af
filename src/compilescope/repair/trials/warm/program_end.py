"""The end of a forked child, as Python's own: threads, exit handlers, objects, streams.

What was imported before the fork is not taken apart: that would be most of the work, for nothing.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

_KEPT = ("__builtins__", "__name__", "__loader__", "__spec__")


def run_to_the_end(
    program: Callable[[], None], known: Collection[str], tell: Callable[[list[str]], None]
) -> None:
    """It never returns. `known` are the modules that are not the program's; `tell` is given those
    that are, at the end."""
    status = 0
    try:
        program()
    except SystemExit as leaving:
        status = _status(leaving)
    # The border: what is wrong here must not keep the process from ending.
    with suppress(Exception):
        private: Any = threading
        private._shutdown()
    with suppress(Exception):
        exits: Any = atexit
        exits._run_exitfuncs()
    _flush()
    with suppress(Exception):
        tell([name for name in list(sys.modules) if name not in known])
    if threading.active_count() == 1:  # Daemons that still run use what the program has.
        _drop(known)
    _flush()
    os._exit(status)


def _status(leaving: SystemExit) -> int:
    code = leaving.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    with suppress(Exception):
        sys.stderr.write(f"{code}\n")
    return 1


def _drop(known: Collection[str]) -> None:
    """The program's globals go, so that its files are closed and its finalizers run."""
    for name, module in reversed(list(sys.modules.items())):
        names = getattr(module, "__dict__", None)
        if (name in known and name != "__main__") or not isinstance(names, dict):
            continue
        for private in (True, False):
            for key in list(names):
                if key not in _KEPT and private == (key[:1] == "_" and key[:2] != "__"):
                    with suppress(Exception):
                        names[key] = None
    gc.collect()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    with suppress(Exception):
        ctypes.CDLL(None).fflush(None)
