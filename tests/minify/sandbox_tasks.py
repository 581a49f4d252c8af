"""What candidates can do to their process."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Any


def echo(payload: Any) -> Any:
    return {"given": payload, "pid": os.getpid()}


def shout(payload: Any) -> Any:
    print("heard on stdout", flush=True)
    os.write(2, b"heard on stderr\n")
    return payload


def refuse(payload: Any) -> Any:
    raise ValueError(f"not {payload}")


def leave(payload: Any) -> Any:
    os._exit(payload)


def leave_politely(payload: Any) -> Any:
    raise SystemExit(payload)


def crash(payload: Any) -> Any:
    os.kill(os.getpid(), getattr(signal, payload))


def hang(payload: Any) -> Any:
    child = subprocess.Popen(["sleep", "600"])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(f"{payload}.new", "w") as file:
        file.write(str(child.pid))
    os.rename(f"{payload}.new", payload)
    time.sleep(600)


def devour(payload: Any) -> Any:
    kept = []
    while True:
        kept.append(bytearray(payload))


def large(payload: Any) -> Any:
    return "x" * payload


def leave_a_daemon(payload: Any) -> Any:
    """It holds all that its parents had open."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            time.sleep(600)
        os.write(write, str(daemon).encode())
        os._exit(0)
    return int(os.read(read, 20))
