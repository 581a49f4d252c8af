"""The warm process behind a sandbox: it imports once, then forks itself for each task.

It runs no task itself and starts no threads. Where it cannot fork, it is started for each task.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.processes.channel import Channel, leave_with
from compilescope.base.processes.cleaner import adopt_orphans, end_children
from compilescope.base.processes.fork import fork_is_safe, serve_forks

NO_MEMORY = ("can't allocate memory", "bad_alloc", "Cannot allocate memory", "out of memory")
FORKS = b"forks"
"""What it says when it is ready, where it can be forked."""
OUTPUT, ANSWER = "output", "answer"
"""The files of a task: what it printed, and what came of it."""


def main(how: str, *words: str) -> None:
    *names, descriptor = words
    driver = Channel.given(int(descriptor))
    _import(names)
    if how == "serve":
        driver.send(FORKS if fork_is_safe() else b"does not")
        adopt_orphans()
        order = serve_forks(driver, _end_daemons)
    else:
        leave_with(driver)
        driver.send(b"ready")
        order = driver.receive()
    if order:
        _do(msgspec.json.decode(order))


def _import(names: list[str]) -> None:
    """What no task shall have to; afterwards this process can still be forked."""
    with suppress(ImportError):
        import tqdm

        # Progress bars inside torch start a thread, and a process with threads cannot be forked.
        tqdm.tqdm.monitor_interval = 0
    for name in names:
        importlib.import_module(name)
    # What is here stays: a task's collector need not look at it, nor copy its pages.
    gc.collect()
    gc.freeze()


def _end_daemons(order: bytes, is_last: bool) -> None:
    if is_last:
        end_children(())  # Whose they are is known only when all are over.


def _do(order: dict[str, Any]) -> None:
    """In a process of the task's own. It never returns."""
    folder = Path(order["folder"])
    with (folder / OUTPUT).open("ab") as output:
        for target in (1, 2):
            os.dup2(output.fileno(), target)
    _limit_memory(order["memory"])
    answer = _call(order["task"], order["payload"])
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(OSError):
        (folder / ANSWER).write_bytes(answer)
    # Nothing that the task left behind, a thread or an exit handler, may hold us up.
    os._exit(0)


def _call(task: str, payload: Any) -> bytes:
    module, _, name = task.partition(":")
    try:
        function: Any = getattr(importlib.import_module(module), name)
        return msgspec.json.encode({"status": "done", "value": function(payload)})
    except MemoryError:
        return msgspec.json.encode({"status": "memory", "error": "it used too much memory"})
    except BaseException as error:  # The border of a worker: whatever it is, it is the answer.
        words = f"{type(error).__name__}: {error}"
        status = "memory" if any(sign in words for sign in NO_MEMORY) else "failed"
        return msgspec.json.encode({"status": status, "error": words})


def _limit_memory(memory: int | None) -> None:
    # Should the machine run out of memory, let it be this process.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    if not memory:
        return
    try:
        import resource

        with open("/proc/self/status") as file:
            sizes = dict(row.split(":", 1) for row in file if ":" in row)
        has = int(sizes["VmData"].split()[0]) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (has + memory, has + memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, KeyError, ValueError):
        return  # No such limits here: time is still limited.


if __name__ == "__main__":
    main(*sys.argv[1:])
