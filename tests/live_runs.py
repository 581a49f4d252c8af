"""Runs that a test writes while somebody looks, and what viewers were told."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec

from builders import ROOT, frame
from compilescope.record.bodies import Body, GraphBreak, ProcessStarted
from compilescope.record.event import Event, encode
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run, new_run_id


class LiveRun:
    """A run whose launcher is this process, so it is live until `end`."""

    def __init__(self, home: Path, name: str = "", **header: Any) -> None:
        name = name or new_run_id("live")
        fields = {
            "run": name,
            "tool": "0.1.0",
            "command": ("model.py", "--steps", "3"),
            "root": ROOT,
            "host": socket.gethostname(),
            "started_ns": time.time_ns(),
            "launcher_pid": os.getpid(),
        }
        self.header = RunHeader(**{**fields, **header})
        self.name = name
        self.folder = create_run(home, self.header)
        self._numbers: dict[str, int] = {}

    def line(self, body: Body, rank: int = 0, **fields: Any) -> bytes:
        process = str(rank)
        number = self._numbers[process] = self._numbers.get(process, -1) + 1
        given = {"stack": (frame(),), **fields}
        event = Event(
            id=f"{process}.{number}",
            time_ns=self.header.started_ns + 1_000_000 * number,
            pid=100 + rank,
            rank=rank,
            body=body,
            **given,
        )
        return encode(event) + b"\n"

    def write(self, *bodies: Body, rank: int = 0) -> None:
        self.append(b"".join(self.line(body, rank) for body in bodies), rank)

    def append(self, data: bytes, rank: int = 0) -> None:
        with (self.folder / f"events-{rank}.jsonl").open("ab") as file:
            file.write(data)

    def end(self, **how: Any) -> None:
        given = {"ended_ns": time.time_ns(), "exit_status": 0, **how}
        self.header = msgspec.structs.replace(self.header, **given)
        write_header(self.folder, self.header)


STARTED = ProcessStarted(argv=("model.py",), python="3.11.7", torch="2.13.0", parent_pid=1)


def broke(what: object = "Data-dependent branching") -> GraphBreak:
    return GraphBreak(gb_type=f"{what}", gb_id="GB0170")


def updates(lines: Iterator[str]) -> Iterator[tuple[str, str, Any]]:
    """Id, kind and data of each event of a stream."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        fields[name] = value
        if not line:
            if "data" in fields:
                yield fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"])
            fields = {}


class Viewer:
    """A browser tab, as far as the stream goes: it holds what it was told, and how often."""

    def __init__(self, base: str, run: str, *, after: str = "") -> None:
        self._address = f"{base}/runs/{run}/events"
        self.last = after
        self.seen: list[str] = []
        """Keys, as often as they came in updates or in the latest snapshot."""
        self.skipped = 0
        self.texts: list[str] = []
        self.totals: dict[str, Any] = {}
        self.counts: dict[str, int] = {}
        self.kinds: list[str] = []
        self.end: dict[str, Any] = {}
        self.closed = threading.Event()
        self._response: httpx.Response | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        headers = {"last-event-id": self.last} if self.last else {}
        try:
            # Without what a secure connection needs: to load that takes longer than a test.
            given: dict[str, Any] = {"headers": headers, "timeout": 600, "verify": False}
            with httpx.stream("GET", self._address, **given) as answer:
                self._response = answer
                for self.last, kind, data in updates(answer.iter_lines()):
                    self.hear(kind, data)
        except (httpx.HTTPError, httpx.StreamError, OSError, RuntimeError):
            pass
        finally:
            self.closed.set()

    def hear(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "snapshot":
            self.seen, self.texts, self.skipped = [], [], 0
        for key, _, text in data.get("entries", ()):
            self.seen.append(key)
            self.texts.append(text)
        self.skipped += sum(data.get("skipped", {}).values())
        self.totals = data.get("totals", self.totals)
        self.counts = data.get("counts", self.counts)
        if kind == "end":
            self.end = data
        self.kinds.append(kind)

    @property
    def events(self) -> list[str]:
        """Ids of the events."""
        return [key.partition("/")[2] for key in self.seen]

    def leave(self) -> str:
        """Go away; what to come back with."""
        if self._response is not None:
            stream = self._response.extensions.get("network_stream")
            if stream is not None:
                found = stream.get_extra_info("socket")
                found.shutdown(socket.SHUT_RDWR)
        self.closed.wait(600)
        return self.last
