"""What the workers of `test_worker.py` do: as a warm process (`warm`) or one by one."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from compilescope.base.processes.channel import Channel, leave_with
from compilescope.base.processes.fork import serve_forks


def serve(channel: Channel) -> None:
    while asked := channel.receive():
        word, _, rest = asked.partition(b" ")
        if word == b"echo":
            channel.send(asked)
        elif word == b"hang":
            leave_with(channel)
            channel.send(b"hangs")
            time.sleep(600)
        elif word == b"die":
            print("its last words", file=sys.stderr)
            os.kill(os.getpid(), int(rest))


def do(order: bytes) -> None:
    word, _, rest = order.partition(b" ")
    if word == b"exit":
        os._exit(int(rest))
    elif word == b"die":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif word == b"hang":
        if os.fork():
            Path(rest.decode()).write_text(str(os.getpid()))
        time.sleep(600)


if __name__ == "__main__":
    channel = Channel.given(int(sys.argv[-1]))
    if sys.argv[1] == "warm":
        channel.send(str(os.getpid()).encode())
        order = serve_forks(channel)
        if order is not None:
            do(order)
    else:
        serve(channel)
