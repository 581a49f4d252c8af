"""A process that has imported torch, and forks itself for every run of a program.

It computes nothing itself, so that a fork is safe; whatever a program sets goes with its child.
A line of JSON on stdin asks for a run, a line on stdout tells how it ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import time
from typing import Any


def answer_requests() -> None:
    import torch
    import torch._dynamo

    import advice.inside  # noqa: F401

    _import_what_compiling_imports()
    with contextlib.suppress(AttributeError):
        torch._dynamo.trace_rules.get_torch_obj_rule_map()  # A table of names, made once.
    gc.collect()
    gc.freeze()  # Else every child's collections walk, and copy, all of torch.
    orders, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    answers.write("ready\n")
    answers.flush()
    for line in orders:
        asked = json.loads(line)
        answers.write(json.dumps(_run(asked)) + "\n")
        answers.flush()


def _import_what_compiling_imports() -> None:
    """A child that compiles finds out what that is: here nothing may be computed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        from advice.inside import modules_of_a_compilation

        with os.fdopen(write, "w") as file:
            file.write("\n".join(modules_of_a_compilation()))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        names = file.read().split()
    os.waitpid(pid, 0)
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _run(asked: dict[str, Any]) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        from advice.inside import run_program

        run_program(asked)  # Never returns.
    end = time.monotonic() + asked["limit_s"]
    pause = 0.002
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return {"status": os.waitstatus_to_exitcode(status), "timed_out": False}
        if time.monotonic() > end:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"status": -signal.SIGKILL, "timed_out": True}
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    answer_requests()
