"""Whole messages between two processes, over a pair of sockets: each has one end.

A process that is talked to needs no more of ours than this.
"""

from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from compilescope.base.processes.deadline import clock

_HEAD = 8
"""Bytes that say how long a message is."""
_PART = 1 << 16
_LOOK_S = 1.0
"""Between two looks at our clock, which a pause (Ctrl-Z) holds. Chosen: exact enough for a limit,
and no work."""
_NOTED_S = 0.2
"""For the thread that hears of a pause to note it. Chosen: it is the next that it does."""


class Channel:
    """One end. One thread at a time reads; no message is empty."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._begun = bytearray()
        self.passed: list[int] = []
        """Descriptors that came with the last message."""

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        one, other = socket.socketpair()
        return cls(one), cls(other)

    @classmethod
    def given(cls, descriptor: int) -> Channel:
        """Of a process that was started with it; what that starts itself does not have it."""
        os.set_inheritable(descriptor, False)
        return cls(socket.socket(fileno=descriptor))

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._line.fileno()

    def send(self, message: bytes, passing: Sequence[int] = ()) -> None:
        """With descriptors that the other process gets too. Raises OSError where it is gone."""
        self._line.settimeout(None)
        whole = len(message).to_bytes(_HEAD, "big") + message
        sent = socket.send_fds(self._line, [whole], passing) if passing else 0
        self._line.sendall(memoryview(whole)[sent:])

    def receive(self, limit_s: float = math.inf) -> bytes | None:
        """The next message: None where it has not come by then, empty where none will come. Time
        in which we were stopped does not count."""
        until, least = clock() + limit_s, 0.0
        while missing := self._missing():
            left = max(least, min(until - clock(), _LOOK_S))
            awake = time.monotonic() + left
            try:
                self._line.settimeout(left)
                # No more than that: who waits for several channels sees what is left in each.
                part, passed, _, _ = socket.recv_fds(self._line, min(missing, _PART), 1)
            except (TimeoutError, BlockingIOError):
                if clock() >= until:
                    # Slept for longer than that? It may be a pause, and we the first to wake.
                    if least or time.monotonic() < awake + _NOTED_S:
                        return None
                    least = _NOTED_S
                continue
            except OSError:
                return b""
            if not part:
                return b""
            if not self._begun:
                self.passed = []
            for each in passed:
                os.set_inheritable(each, False)
                self.passed.append(each)
            self._begun += part
        message = bytes(memoryview(self._begun)[_HEAD:])
        self._begun = bytearray()
        return message

    def close(self) -> None:
        with suppress(OSError):
            self._line.close()

    def _missing(self) -> int:
        """How many bytes belong to what has begun, and are not there."""
        if len(self._begun) < _HEAD:
            return _HEAD - len(self._begun)
        size = int.from_bytes(memoryview(self._begun)[:_HEAD], "big")
        return _HEAD + size - len(self._begun)


def leave_with(channel: Channel) -> None:
    """This process ends when the other end is closed, whatever it does just then."""

    def watch() -> None:
        events = select.poll()
        events.register(channel.fileno(), 0)  # A closed end is told in any case.
        events.poll()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
