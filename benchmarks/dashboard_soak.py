"""The dashboard under load for a while: viewers of live runs, and runs that are started meanwhile.

    python benchmarks/dashboard_soak.py [--minutes 10] [--viewers 50] [--runs 20] [--json FILE]

Starts the real `compilescope serve`. Half of the viewers follow one run that is written all the
time, and drop their connection now and then; the others follow the programs that are started
through the form, from first to last. At the end each viewer's entries are compared with the event
files: nothing may be missing, nothing may have come twice. Meanwhile the server's memory,
descriptors and threads are recorded, and how long the page of runs takes. Exits with 1 if anything
was lost, came twice or failed, if memory grew, or if the server did not stop in order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from compilescope.apps.dashboard.live.live_entries import kind_of
from compilescope.base.processes.table import resident_bytes
from compilescope.record.bodies import Body, CompileTime, GraphBreak, GraphCaptured
from compilescope.record.event import Event, encode
from compilescope.record.eventfile import EventReader, event_files
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run
from compilescope.record.stack import CodeRef, Frame

_PROGRAM = """
import sys, time, torch

def make(n):
    @torch.compile(backend="eager")
    def step(x):
        x = x * n
        print("step", n, flush=True)
        return x + n
    return step

for n in range(int(sys.argv[1])):
    make(n)(torch.ones(3 + n % 2))
    time.sleep(1)
"""
_WRITES_A_SECOND = 5
_SAMPLE_S = 5.0
_LATE_S = 300
"""How much longer started runs may take than planned: only two run at once."""
_GROWTH = 1.25
_GROWTH_BYTES = 32 << 20
"""Memory has grown if its last quarter exceeds the second by that factor and by so much."""


@dataclass
class Found:
    """What all viewers and clients came to."""

    followed: int = 0
    entries: int = 0
    lost: int = 0
    doubled: int = 0
    reconnects: int = 0
    reports: int = 0
    errors: list[str] = field(default_factory=list)
    page_ms: list[float] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)


class Soak:
    """One run of this benchmark."""

    def __init__(self, asked: argparse.Namespace, folder: Path) -> None:
        self.asked = asked
        self.home = folder / ".compilescope"
        self.work = folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.work / "program.py").write_text(_PROGRAM)
        self.found = Found()
        self.seconds = asked.minutes * 60
        self.server, self.base, self.token = self._serve()
        self.steady = self._steady_run()

    def _serve(self) -> tuple[subprocess.Popen[str], str, str]:
        words = ["serve", "--port", "0", "--dir", str(self.home), "--allow", str(self.work)]
        server = subprocess.Popen(
            [sys.executable, "-m", "compilescope", *words],
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.work,
        )
        assert server.stdout is not None
        said = server.stdout.readline()
        address = next(word for word in said.split() if word.startswith("http://"))
        base, _, token = address.partition("/?token=")
        return server, base, token.rstrip(".")

    def _steady_run(self) -> Path:
        self.header = RunHeader(
            run="000000-steady",
            tool="0",
            command=("steady.py",),
            root="/work",
            host=socket.gethostname(),
            started_ns=time.time_ns(),
            launcher_pid=os.getpid(),
        )
        return create_run(self.home, self.header)

    async def run(self) -> None:
        given = {"authorization": f"Bearer {self.token}", "origin": self.base}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=10)
        async with httpx.AsyncClient(
            base_url=self.base, headers=given, timeout=60, limits=limits
        ) as self.client:
            half = self.asked.viewers // 2
            sampling = asyncio.create_task(self._sample())
            tasks = [asyncio.create_task(self._write())]
            tasks += [asyncio.create_task(self._stay(n)) for n in range(self.asked.viewers - half)]
            tasks += [asyncio.create_task(self._go_around(n)) for n in range(half)]
            tasks.append(asyncio.create_task(self._start_runs()))
            for task in asyncio.as_completed(tasks):
                await task
            sampling.cancel()
            await self._stop()

    async def _write(self) -> None:
        """The steady run: events one by one, then its end."""
        code = CodeRef("/models/steady.py", 3, "step")
        stack = (Frame("/models/steady.py", 4, "step", 4, 9, "    print(x)"),)
        kinds: list[Body] = [
            GraphBreak(gb_type="Failed to trace builtin operator", gb_id="GB0059", frame=code),
            GraphCaptured(stage="dynamo", ops=2, frame=code, region=code, backend="eager"),
            CompileTime(3_000_000, frame=code),
        ]
        until = time.monotonic() + self.seconds
        number = 0
        with (self.steady / "events-0.jsonl").open("ab", buffering=0) as file:
            while time.monotonic() < until:
                event = Event(
                    id=f"0.{number}",
                    time_ns=time.time_ns(),
                    pid=os.getpid(),
                    stack=stack,
                    body=kinds[number % len(kinds)],
                )
                file.write(encode(event) + b"\n")
                number += 1
                await asyncio.sleep(1 / _WRITES_A_SECOND)
        ended = {"ended_ns": time.time_ns(), "exit_status": 0}
        write_header(self.steady, RunHeader(**{**_fields(self.header), **ended}))

    async def _start_runs(self) -> None:
        """Through the form, evenly over the time, so that the last ends within it."""
        pause = self.seconds / (self.asked.runs + 1)
        fields = {"script": str(self.work / "program.py"), "arguments": str(self._steps())}
        for _ in range(self.asked.runs):
            await asyncio.sleep(pause)
            answer = await self.client.post("/start/run", data=fields)
            if answer.status_code != 303:
                self.found.errors.append(f"start: {answer.status_code} {answer.text[:200]}")

    def _steps(self) -> int:
        return max(3, min(15, int(self.seconds / 10)))

    async def _stay(self, number: int) -> None:
        """Follows the steady run; lets go of its connection now and then, as a browser may."""
        chance = random.Random(number)
        viewing = _Viewing(self.steady.name)
        while not viewing.ended:
            patience = chance.uniform(10, 60)
            try:
                await asyncio.wait_for(self._follow(viewing), patience)
            except asyncio.TimeoutError:
                self.found.reconnects += 1
            except httpx.HTTPError as error:
                self.found.errors.append(f"steady viewer: {error!r}")
                await asyncio.sleep(2)
        self._check(viewing)

    async def _go_around(self, number: int) -> None:
        """Follows whatever program runs now, each to its end."""
        done: set[str] = {self.steady.name}
        until = time.monotonic() + self.seconds + _LATE_S
        while len(done) <= self.asked.runs:
            if time.monotonic() > until:
                self.found.errors.append(f"only {len(done) - 1} of the started runs began")
                break
            fresh = self._fresh(done)
            if not fresh:
                await asyncio.sleep(0.5)
                continue
            viewing = _Viewing(fresh[number % len(fresh)])
            while not viewing.ended:
                try:
                    await self._follow(viewing)
                except httpx.HTTPError as error:
                    self.found.errors.append(f"viewer of {viewing.run}: {error!r}")
                    await asyncio.sleep(2)
            self._check(viewing)
            if number == 0:
                await self._open_report(viewing.run)
            done.add(viewing.run)

    async def _open_report(self, run: str) -> None:
        """As somebody does who watched it to its end."""
        status = 202
        for _ in range(60):
            answer = await self.client.get(f"/runs/{run}", headers={"accept": "text/html"})
            status = answer.status_code
            if status != 202:  # Still being drawn: a browser asks again by itself.
                break
            await asyncio.sleep(1)
        self.found.reports += status == 200
        if status != 200:
            self.found.errors.append(f"report of {run}: {status}")

    def _fresh(self, done: set[str]) -> list[str]:
        names = (path.name for path in self.home.iterdir() if (path / "run.json").is_file())
        return sorted(set(names) - done)

    async def _follow(self, viewing: _Viewing) -> None:
        headers = {"last-event-id": viewing.last} if viewing.last else {}
        address = f"/runs/{viewing.run}/events"
        async with self.client.stream("GET", address, headers=headers) as answer:
            answer.raise_for_status()
            async for identity, kind, data in _updates(answer):
                viewing.hear(identity, kind, data)

    def _check(self, viewing: _Viewing) -> None:
        expected = set()
        reader = EventReader()
        for path in event_files(self.home / viewing.run):
            expected |= {event.id for event in reader.read(path) if kind_of(event) is not None}
        seen = {key.partition("/")[2] for key in viewing.seen}
        self.found.followed += 1
        self.found.entries += len(expected)
        self.found.lost += len(expected - seen)
        self.found.doubled += len(viewing.seen) - len(set(viewing.seen)) + len(seen - expected)

    async def _sample(self) -> None:
        process = psutil.Process(self.server.pid)
        began = time.monotonic()
        while True:
            before = time.perf_counter()
            try:
                answer = await self.client.get("/", headers={"accept": "text/html"})
                answer.raise_for_status()
                self.found.page_ms.append(1000 * (time.perf_counter() - before))
            except httpx.HTTPError as error:
                self.found.errors.append(f"runs page: {error!r}")
            workers = [child for child in process.children() if "spawn" in " ".join(_words(child))]
            self.found.samples.append(
                {
                    "minute": (time.monotonic() - began) / 60,
                    "rss_mb": process.memory_info().rss / 1e6,
                    "workers_mb": sum(resident_bytes(child.pid) for child in workers) / 1e6,
                    "descriptors": process.num_fds(),
                    "threads": process.num_threads(),
                    "cpu_s": sum(process.cpu_times()[:2]),
                }
            )
            await asyncio.sleep(_SAMPLE_S)

    async def _stop(self) -> None:
        """With a viewer connected: that must not hold it up."""
        self.header = RunHeader(**{**_fields(self.header), "run": "000001-open"})
        create_run(self.home, self.header)
        viewing = asyncio.create_task(self._follow(_Viewing("000001-open")))
        await asyncio.sleep(1)
        before = time.monotonic()
        self.server.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(self.server.wait, 30)
        self.stopped_s = time.monotonic() - before
        if status not in (0, -signal.SIGTERM, 143) or self.stopped_s > 3:
            self.found.errors.append(f"the server stopped with {status} in {self.stopped_s:.1f} s")
        await asyncio.gather(viewing, return_exceptions=True)


@dataclass
class _Viewing:
    """One viewer of one run."""

    run: str
    last: str = ""
    seen: list[str] = field(default_factory=list)
    ended: bool = False

    def hear(self, identity: str, kind: str, data: dict[str, Any]) -> None:
        self.last = identity
        keys = [entry[0] for entry in data.get("entries", ())]
        if kind == "snapshot":
            known = set(self.seen)
            keys = [key for key in keys if key not in known]
        self.seen += keys
        self.ended = kind == "end"


async def _updates(answer: httpx.Response) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        fields[name] = value
        if not line:
            if "data" in fields:
                yield fields["id"], fields["event"], json.loads(fields["data"])
            fields = {}


def _fields(header: RunHeader) -> dict[str, Any]:
    return {name: getattr(header, name) for name in header.__struct_fields__}


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _grew(samples: list[dict[str, float]]) -> tuple[float, float]:
    """Memory in the second quarter and in the last, in MB."""
    quarter = max(1, len(samples) // 4)
    early = statistics.mean(each["rss_mb"] for each in samples[quarter : 2 * quarter] or samples)
    return early, statistics.mean(each["rss_mb"] for each in samples[-quarter:])


def _print(soak: Soak) -> bool:
    found = soak.found
    print(f"{'minute':>7} {'RSS MB':>8} {'workers':>8} {'files':>6} {'threads':>8} {'CPU s':>7}")
    for each in found.samples[:: max(1, len(found.samples) // 20)]:
        print(
            f"{each['minute']:7.1f} {each['rss_mb']:8.1f} {each['workers_mb']:8.1f} "
            f"{each['descriptors']:6.0f} {each['threads']:8.0f} {each['cpu_s']:7.1f}"
        )
    early, late = _grew(found.samples)
    grew = late > early * _GROWTH and (late - early) * 1e6 > _GROWTH_BYTES
    pages = sorted(found.page_ms) or [0.0]
    print(f"runs followed to their end  {found.followed}, {found.entries:,} entries")
    print(f"lost {found.lost}, came twice {found.doubled}, reconnected {found.reconnects} times")
    print(f"reports opened {found.reports}")
    print(f"memory {early:.0f} MB in the second quarter, {late:.0f} MB in the last")
    worst, median = pages[-1], statistics.median(pages)
    print(f"runs page: median {median:.0f} ms, worst {worst:.0f} ms of {len(pages)}")
    print(f"stopped within {soak.stopped_s:.1f} s")
    for error in found.errors[:20]:
        print(f"error: {error}")
    fine = not (found.lost or found.doubled or found.errors or grew) and found.followed > 0
    print("steady, nothing lost" if fine else "NOT FINE")
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=Path, help="the samples and figures, as JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compilescope-soak-") as folder:
        soak = Soak(asked, Path(folder).resolve())
        try:
            asyncio.run(soak.run())
        finally:
            soak.server.kill()
    fine = _print(soak)
    if asked.json:
        asked.json.write_text(json.dumps(vars(soak.found), indent=1))
    sys.exit(not fine)


if __name__ == "__main__":
    main()
