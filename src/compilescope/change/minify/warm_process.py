"""The warm process behind a sandbox: it imports once, then forks itself for each task.

It runs no task itself and starts no threads. It keeps the time of its children and says how each
ended. When its control socket closes it kills them and leaves.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import msgspec

from compilescope.base.processes.fork import ChildBell, die_with_parent, fork_is_safe, kill_group
from compilescope.base.processes.guard import adopt_orphans, end_children

NO_MEMORY = ("can't allocate memory", "bad_alloc", "Cannot allocate memory", "out of memory")
TIMED_OUT = 124
"""The status of a task that took too long: as the command `timeout` has it."""


def main(words: list[str]) -> None:
    how, first, *rest = words
    if how == "serve":
        _import(rest)
        serve(socket.socket(fileno=int(first)))
    else:
        *rest, question, reply = rest
        memory, *warm = rest
        once(float(first), int(memory) or None, warm, question, reply)


def serve(control: socket.socket) -> None:
    if not fork_is_safe():
        control.sendall(b"s")
        return
    control.sendall(b"f")
    bell = ChildBell()
    adopt_orphans()
    running: dict[int, tuple[socket.socket, float]] = {}
    while True:
        nearest = min((end for _, end in running.values()), default=None)
        wait = None if nearest is None else max(0.0, nearest - time.monotonic())
        if bell.wait([control], wait) and not _accept(control, running, bell):
            break
        _reap(running)
    for pid in running:
        kill_group(pid)


def once(limit_s: float, memory: int | None, warm: list[str], question: str, reply: str) -> None:
    """Without a fork: one task, with this process for its own."""
    _import(warm)
    threading.Timer(limit_s, os._exit, [TIMED_OUT]).start()
    _limit_memory(memory)
    with open(question, "rb") as file:
        body = file.read()
    answer = _call(body)
    with open(reply, "wb") as file:
        file.write(answer)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


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


def _accept(
    control: socket.socket, running: dict[int, tuple[socket.socket, float]], bell: ChildBell
) -> bool:
    """Fork a child for the next task. False at the end."""
    head, descriptors, _, _ = socket.recv_fds(control, 4, 2)
    if len(head) < 4 or len(descriptors) < 2:
        return False
    for each in descriptors:
        os.set_inheritable(each, False)
    limit_s, memory = msgspec.json.decode(control.recv(int.from_bytes(head, "big")))
    line, output = socket.socket(fileno=descriptors[0]), descriptors[1]
    pid = os.fork()
    if pid == 0:
        control.close()
        for other, _ in running.values():
            other.close()
        bell.leave()
        _serve_one(line, output, memory)
    os.close(output)
    running[pid] = (line, time.monotonic() + limit_s)
    return True


def _serve_one(line: socket.socket, output: int, memory: int | None) -> None:
    """In the child. It never returns."""
    os.setsid()
    for target in (1, 2):
        os.dup2(output, target)
    die_with_parent()
    _limit_memory(memory)
    parts = []
    while part := line.recv(1 << 16):
        parts.append(part)
    answer = _call(b"".join(parts))
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(OSError):
        line.sendall(answer)
    # Nothing that the task left behind, a thread or an exit handler, may hold us up.
    os._exit(0)


def _call(body: bytes) -> bytes:
    asked = msgspec.json.decode(body)
    module, _, name = asked["task"].partition(":")
    try:
        function: Any = getattr(importlib.import_module(module), name)
        return msgspec.json.encode({"status": "done", "value": function(asked["payload"])})
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


def _reap(running: dict[int, tuple[socket.socket, float]]) -> None:
    now = time.monotonic()
    for pid, (line, end) in list(running.items()):
        late = now >= end
        if late:
            kill_group(pid)
        done, status = os.waitpid(pid, 0 if late else os.WNOHANG)
        if not done:
            continue
        kill_group(pid)  # What it started, and did not end.
        del running[pid]
        ending = {"exit": os.waitstatus_to_exitcode(status), "timeout": late}
        with suppress(OSError):
            line.sendall(b"\n" + msgspec.json.encode(ending))
        line.close()
        if not running:
            end_children(())  # Daemons: whose they are is known only when all are over.


if __name__ == "__main__":
    main(sys.argv[1:])
