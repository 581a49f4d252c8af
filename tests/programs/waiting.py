"""Compiles, says so, then waits; how it ends is up to the first argument and to who interrupts."""

import ctypes
import os
import signal
import sys
import time

import torch

how = sys.argv[1]


@torch.compile(backend="eager")
def early(x):
    print("breaking", flush=True)
    return x + 1


def terminated(number, frame):
    print("terminated", flush=True)
    sys.exit(9)


if how == "handler":
    signal.signal(signal.SIGTERM, terminated)
early(torch.ones(2))
try:
    print("ready", os.getpid(), flush=True)
    if how == "segfault":
        ctypes.string_at(0)
    time.sleep(100)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    # A second interrupt would end the program here, and be seen.
    time.sleep(0.7)
    sys.exit(7)
