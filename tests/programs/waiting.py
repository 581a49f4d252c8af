"""Compiles, says so, then waits; how it ends is up to the first argument and to who interrupts."""

import ctypes
import os
import signal
import sys
import time

how = sys.argv[1]
if how not in ("count", "uncompiled"):
    import torch


def early(x):
    print("breaking", flush=True)
    return x + 1


def terminated(number, frame):
    print("terminated", flush=True)
    sys.exit(9)


if how == "handler":
    signal.signal(signal.SIGTERM, terminated)
if how not in ("count", "uncompiled"):
    torch.compile(early, backend="eager")(torch.ones(2))
if how == "count":
    # The interpreter joins signals that come close together; the wakeup descriptor counts them.
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    print("ready", os.getpid(), flush=True)
    first = os.read(reading, 1)
    time.sleep(0.7)
    os.write(writing, b".")
    print("signals", len(first + os.read(reading, 99)) - 1, flush=True)
    sys.exit(7)
try:
    print("ready", os.getpid(), flush=True)
    if how == "segfault":
        ctypes.string_at(0)
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    if how == "default":
        time.sleep(600)
    # A second interrupt would end the program here, and be seen.
    time.sleep(0.7)
    sys.exit(7)
