"""Several ranks that are one program to us: torchrun's own process speaks for all of them.

Each rank has a line to it, and says what a program of one process says. Once all have said
something, one word goes out: a step is the slowest rank's. What is asked goes to every rank, so
they stand at their marks together and step together.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilescope.base.processes.channel import Channel, leave_with
from compilescope.base.settings import env_rank, env_ranks

_DOOR = "ranks"
"""The socket, in the folder of the processes."""
_LEAVE_S = 5.0
"""For the last words of ranks that have ended. Chosen: they are here already, or never come."""
_ONCE = ("counted", "kept", "ended")
"""After that nothing more is said."""


def call_hub(folder: Path) -> Channel:
    """A rank's line; the process ends with it. Raises OSError where nobody listens."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(folder / _DOOR))
    os.set_inheritable(line.fileno(), False)
    channel = Channel(line)
    hello = {"rank": env_rank(), "ranks": env_ranks()}
    channel.send(json.dumps(hello).encode())
    leave_with(channel)
    return channel


def joined(said: Mapping[int, dict[str, Any]]) -> dict[str, Any] | None:
    """What all ranks say, as one; None where some of them have not settled yet."""
    words = list(said.values())
    kinds = {each["kind"] for each in words}
    if "ended" in kinds:
        return {"kind": "ended"}
    if "settling" in kinds:
        return None
    if kinds == {"counted"}:
        return _counted(said)
    # Each is a time, a size or a number of steps: that of the rank that has most.
    return {
        name: value if name == "kind" else max(each[name] for each in words)
        for name, value in words[0].items()
    }


def _counted(said: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    """A place that one rank does not pass is no step of all."""
    first = said[min(said)]
    rounds = [
        (min(each[0] for each in laps), max(each[1] for each in laps), *laps[0][2:])
        for laps in zip(*(each["rounds"] for each in said.values()), strict=True)
    ]
    facts = [{**each, "ranks": len(said)} for each in first["facts"]]
    ended = any(each["ended"] for each in said.values())
    return {**first, "rounds": rounds, "facts": facts, "ended": ended}


class RankHub:
    """Listens, in a thread of torchrun's own process."""

    def __init__(self, ours: Channel, folder: Path) -> None:
        self._ours = ours
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / _DOOR))
        self._door.listen(128)
        self._ranks: dict[int, Channel] = {}
        self._count = 0
        self._said: dict[int, dict[str, Any]] = {}
        self._ended: set[int] = set()
        self._has_asked = self._is_over = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._door, selectors.EVENT_READ, self._welcome)
        self._selector.register(self._ours, selectors.EVENT_READ, self._pass_on)

    def start(self) -> None:
        thread = threading.Thread(target=self._serve, daemon=True)
        thread.start()
        atexit.register(thread.join, _LEAVE_S)

    def _serve(self) -> None:
        while self._ranks or not self._count or len(self._ended) < self._count:
            for key, _ in self._selector.select():
                if not key.data():
                    self._close()
                    return

    def _welcome(self) -> bool:
        line, _ = self._door.accept()
        channel = Channel(line)
        hello = channel.receive()
        if hello:
            told = json.loads(hello)
            rank, self._count = int(told["rank"]), int(told["ranks"])
            self._ranks[rank] = channel
            self._selector.register(channel, selectors.EVENT_READ, lambda: self._heard(rank))
        return True

    def _pass_on(self) -> bool:
        """False where nobody waits for this program any more."""
        asked = self._ours.receive()
        if asked:
            self._tell(asked)
        return bool(asked)

    def _heard(self, rank: int) -> bool:
        """False where the rank is lost."""
        message = self._ranks[rank].receive()
        if not message:
            self._drop(rank)
            return rank in self._ended or self._is_over
        self._said[rank] = said = json.loads(message)
        if said["kind"] == "ended" or said.get("ended"):
            self._ended.add(rank)
        elif said["kind"] == "counted" and not self._has_asked:
            self._has_asked = True
            self._tell(b"{}")  # The others may wait for it in the midst of a step.
        if len(self._said) == self._count and not self._is_over:
            self._join()
        return True

    def _join(self) -> None:
        word = joined(self._said)
        self._said = {rank: {"kind": "ended"} for rank in self._ended}
        if word is None:
            self._tell(json.dumps({"steps": 0}).encode())
            return
        self._is_over = word["kind"] in _ONCE
        if word["kind"] == "ended":
            self._drop_waiting()  # The others tell how they ended.
        self._ours.send(json.dumps(word).encode())

    def _tell(self, message: bytes) -> None:
        for rank, channel in self._ranks.items():
            if rank not in self._ended and rank not in self._said:
                with contextlib.suppress(OSError):  # It is gone, and is heard of next.
                    channel.send(message)

    def _drop(self, rank: int) -> None:
        channel = self._ranks.pop(rank)
        self._selector.unregister(channel)
        channel.close()

    def _close(self) -> None:
        """The ranks leave too; who listens hears that nobody speaks any more."""
        self._ours.close()
        self._door.close()
        self._drop_waiting()

    def _drop_waiting(self) -> None:
        for rank in set(self._ranks) - self._ended:
            self._drop(rank)
