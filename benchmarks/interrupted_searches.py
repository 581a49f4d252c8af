"""Searches that are interrupted at a random moment: what do they leave behind, and for how long?

    python benchmarks/interrupted_searches.py [--count 50] [--seed 1] [--longest 40] [--only fix]

Each one is `fix` (`--write`, `--script`, `--isolated`, `--apply`), `minify` (`--isolated`,
`--check`, `--jobs`), `sweep` (`--fix`) or `check` of a small program: a plain one, or one that
starts processes which ignore signals, leave the session, forget their environment or start others
without end, or one that fills the disk or holds locks. Signals come to the command or to its group,
one or two in quick succession. When the command has ended, and its cleaner too, there must be no
process of it, nothing in its temporary folder, nothing half written, no journal, and its sources
are what they were or wholly patched. A command that was faster than the signal is no interruption
and not counted. Linux only. Exit status: 1 if anything was left.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import getpass
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

MARK = "INTERRUPTED_SEARCH"
_INT, _TERM, _HUP, _KILL = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL
WAYS: tuple[tuple[signal.Signals, ...], ...] = (
    *((_INT,), (_TERM,), (_HUP,), (_KILL,), (_INT, _INT), (_INT, _TERM), (_TERM, _TERM)),
    *((_HUP, _TERM), (_INT, _KILL), (_TERM, _KILL)),
)
_CLEAN_S = 60.0
_FASTEST_S = 0.15
_SPAWNS = {
    "plain": "",
    "deaf": """
import subprocess, sys
deaf = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; "
subprocess.Popen([sys.executable, "-c", deaf + "time.sleep(600)"])
""",
    "deaf itself": """
import signal
for number in (1, 2, 15):
    signal.signal(number, signal.SIG_IGN)
""",
    "session": """
import subprocess
subprocess.Popen(["sleep", "600"], start_new_session=True)
""",
    "daemon": """
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "600"])
    os._exit(0)
""",
    "forgetful": """
import subprocess
subprocess.Popen(["sleep", "600.TOKEN"], start_new_session=True, env={})
import time; time.sleep(2)
""",
    "restless": """
import subprocess
again = "n=0; while [ $n -lt 9000 ]; do n=$((n+1)); (setsid sleep 0.05 &); sleep 0.02; done"
subprocess.Popen(["sh", "-c", again])
""",
    "large": """
import tempfile
for place in (tempfile.mkdtemp(), "."):
    with open(place + "/written.txt", "wb") as file:
        file.write(bytes(40 << 20))
""",
    "locked": """
import fcntl, os, subprocess
held = open("written.txt", "a")
fcntl.flock(held, fcntl.LOCK_SH)
subprocess.Popen(["sleep", "600"], pass_fds=[held.fileno()], start_new_session=True)
""",
    "stopped": """
import subprocess
subprocess.Popen(["sh", "-c", "kill -STOP $$; sleep 600"], start_new_session=True)
""",
}
_MAIN = """
import torch
from parts import first, second


@torch.compile(backend="eager")
def step(x):
    x = first.work(x)
    print("step")
    return second.work(x)


print(step(torch.ones(4)))
"""
_PART = """
def work(x):
    x = x + {number}
    print("work {number}")
    return x * 2
"""
_CHECK = "#!/bin/sh\nsleep 0.05\ngrep -q graph_break $1\n"
_RUNS_OFTEN = (
    *("fix", "fix --write", "fix --script", "fix --isolated", "fix --write --isolated"),
    *("minify", "minify --isolated", "minify --jobs 2", "minify --check"),
    *("sweep", "sweep --fix"),
)
_COMMANDS = (*_RUNS_OFTEN, "check", "fix --apply")
"""What a program that `check` runs once leaves running is its own affair, as without it."""
_LAID_OUT = {"main.py", "parts", "check.sh", "check.txt"}
_RESULTS = {".compilescope", "repro.py", ".repro.py.minify.json", "written.txt", "__pycache__"}
_RESULTS |= {"main_fixed.py", "check.min.txt", ".check.min.txt.minify.json"}


@dataclass
class Place:
    """Where one command works, and what is known of it."""

    root: Path
    runs_once: bool = False
    token: str = field(default_factory=lambda: str(secrets.randbelow(10**12)).zfill(12))

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def temporary(self) -> Path:
        return self.root / "t"

    @property
    def state(self) -> Path:
        return self.root / "state"

    def environment(self) -> dict[str, str]:
        own = {MARK: self.token, "TMPDIR": str(self.temporary), "XDG_STATE_HOME": str(self.state)}
        return {**os.environ, **own}

    def lay_out(self, spawn: str) -> None:
        (self.work / "parts").mkdir(parents=True)
        self.temporary.mkdir(exist_ok=True)
        (self.work / "main.py").write_text(spawn.replace("TOKEN", self.token) + _MAIN)
        for number, name in enumerate(("first", "second"), 1):
            (self.work / "parts" / f"{name}.py").write_text(_PART.format(number=number))
        check = self.work / "check.sh"
        check.write_text(_CHECK)
        check.chmod(0o755)
        lines = [f"line {number} of the file" for number in range(400)]
        (self.work / "check.txt").write_text("\n".join([*lines, "graph_break", *lines]))


@dataclass(frozen=True)
class Outcome:
    """What one interruption came to."""

    left: list[str]
    ended_s: float
    """From the signal to the command's end."""
    clean_s: float
    """From there until nothing was left."""


def main() -> None:
    asked = _arguments()
    # Shells and `nohup` start others with some signals ignored, and that is inherited.
    for each in (_INT, _TERM, _HUP, signal.SIGCHLD):
        signal.signal(each, signal.SIG_DFL)
    chance = random.Random(asked.seed)
    commands = [each for each in _COMMANDS if each.startswith(asked.only)]
    known = dict.fromkeys(commands, asked.longest) | {"fix --apply": min(3.0, asked.longest)}
    bad, took = 0, []
    number = 0
    while number < asked.count:
        what = chance.choice(commands)
        name = chance.choice(sorted(_SPAWNS)) if what in _RUNS_OFTEN else "plain"
        way, group = chance.choice(WAYS), chance.random() < 0.5
        after = chance.uniform(_FASTEST_S, known[what])
        begun = time.monotonic()
        found = _interrupted(what, name, way, group, after, chance)
        if found is None:
            known[what] = max(2 * _FASTEST_S, min(known[what], time.monotonic() - begun))
            continue
        number += 1
        bad += bool(found.left)
        took.append((found.ended_s, found.clean_s))
        words = "; ".join(found.left) or f"ended {found.ended_s:4.1f} s, clean {found.clean_s:4.1f}"
        signals = "+".join(each.name.removeprefix("SIG") for each in way)
        to = f"{signals} to {'group' if group else 'command'}"
        print(f"{number:3} {what:22} {name:11} {to:20} {after:5.1f} s  {words}", flush=True)
    ended, clean = (max(each) for each in zip(*took, strict=True))
    print(f"{bad} of {asked.count} left something behind.")
    print(f"At most {ended:.1f} s from the signal to the end, {clean:.1f} s from there to clean.")
    sys.exit(1 if bad else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=40.0, help="seconds before the signal")
    parser.add_argument("--only", default="", help="commands that begin like this")
    return parser.parse_args()


def _interrupted(
    what: str,
    name: str,
    way: tuple[signal.Signals, ...],
    group: bool,
    after: float,
    chance: random.Random,
) -> Outcome | None:
    """None: the command was faster."""
    with _place() if what != "fix --apply" else _searched_place() as place:
        if what != "fix --apply":
            place.lay_out(_SPAWNS[name])
        place.runs_once = what in ("check", "sweep")
        sources = _sources(place.work)
        signalled, pid = _start_and_stop(
            _command(what, place.work), place, way, group, after, chance
        )
        if signalled is None:
            return None
        ended = time.monotonic()
        left = _left(place, pid, sources)
        return Outcome(left, ended - signalled, time.monotonic() - ended)


@contextmanager
def _place() -> Iterator[Place]:
    place = Place(Path(tempfile.mkdtemp(prefix="interrupted-")))
    try:
        yield place
    finally:
        for pid in _processes(place.token):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(place.root, ignore_errors=True)


_searched: list[Place] = []


@contextmanager
def _searched_place() -> Iterator[Place]:
    """Where a search has found something to apply: one for all, since its run names its paths."""
    if not _searched:
        place = Place(Path(tempfile.mkdtemp(prefix="interrupted-")))
        atexit.register(shutil.rmtree, place.root, ignore_errors=True)
        place.lay_out("")
        command, around = _tool("fix", "--no-time", "main.py"), place.environment()
        subprocess.run(command, cwd=place.work, env=around, capture_output=True, check=True)
        _searched.append(place)
    before = {path: path.read_bytes() for path in _source_files(_searched[0].work)}
    yield _searched[0]
    for path, data in before.items():
        path.write_bytes(data)


def _tool(*words: str) -> list[str]:
    return [sys.executable, "-m", "compilescope", *words]


def _command(what: str, work: Path) -> list[str]:
    if what == "fix --apply":
        (run,) = (path.name for path in (work / ".compilescope").glob("*-main"))
        return _tool("fix", "--force", "--apply", run)
    if what == "minify --check":
        return _tool("minify", "--check", "./check.sh", "check.txt")
    command, *flags = what.split()
    if command == "sweep":
        return _tool(*what.split(), ".")
    more = ["--force"] if "--write" in flags else []
    more += ["--no-time"] if command == "fix" else []
    return _tool(command, *flags, *more, "main.py")


def _start_and_stop(
    command: list[str],
    place: Place,
    way: tuple[signal.Signals, ...],
    group: bool,
    after: float,
    chance: random.Random,
) -> tuple[float | None, int]:
    """When the first signal was sent; None: there was nobody to send it to."""
    process = subprocess.Popen(
        command,
        cwd=place.work,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(after)
    if process.poll() is not None:
        return None, process.pid
    begun = time.monotonic()
    send = os.killpg if group else os.kill
    for at, each in enumerate(way):
        if at:
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.choice((0.0, 0.01, 0.1, 0.5)))
        if process.poll() is None:
            send(process.pid, each)
    try:
        process.wait(600)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return begun, process.pid


def _left(place: Place, pid: int, sources: dict[str, bytes]) -> list[str]:
    until = time.monotonic() + _CLEAN_S
    while (found := _remains(place, pid)) and time.monotonic() < until:
        time.sleep(0.05)
    found += _half_written(place.work)
    now = _sources(place.work)
    changed = sorted(path for path in sources if now.get(path) != sources[path])
    if changed and len(changed) != len(sources):
        found.append(f"only {', '.join(changed)} patched")
    return found


def _remains(place: Place, pid: int) -> list[str]:
    found = [f"process {each} {_words(each)}" for each in _processes(place.token)]
    found += [f"cleaner {each}" for each in _pids() if _is_cleaner_of(each, pid)]
    # A program that runs once keeps torch's own cache there, as without us.
    cache = f"torchinductor_{getpass.getuser()}" if place.runs_once else ""
    held = (path.name for path in place.temporary.iterdir() if path.name != cache)
    found += [f"temporary {name}" for name in held]
    found += [f"state {path.name}" for path in place.state.rglob("*.journal")]
    known = _LAID_OUT | _RESULTS
    found += [path.name for path in place.work.iterdir() if path.name not in known]
    inside = (place.work / "parts", place.work / ".compilescope")
    for folder in inside:
        hidden = (path for path in folder.rglob(".*") if path.name != ".gitignore")
        found += [f"{folder.name}/{path.name}" for path in hidden]
    return found


def _half_written(work: Path) -> list[str]:
    """Results that are there are whole."""
    found = []
    for path in (*work.glob("*.py"), *work.glob("parts/*.py")):
        try:
            ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            found.append(f"half of {path.name}")
    for path in (*work.glob(".*.json"), *work.glob(".compilescope/*/*.json")):
        try:
            json.loads(path.read_bytes())
        except ValueError:
            found.append(f"half of {path.name}")
    smaller = work / "check.min.txt"
    if smaller.exists() and b"graph_break" not in smaller.read_bytes():
        found.append("half of check.min.txt")
    return found


def _sources(work: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in _source_files(work)}


def _source_files(work: Path) -> list[Path]:
    return [work / "main.py", *sorted((work / "parts").glob("*.py"))]


def _processes(token: str) -> list[int]:
    """By the environment they were started with; who forgets that, by what it runs."""
    mark = f"{MARK}={token}".encode()
    return [
        pid
        for pid in _pids()
        if (mark in _read(pid, "environ") or token.encode() in _read(pid, "cmdline"))
        and not _is_over(pid)
    ]


def _is_cleaner_of(pid: int, command: int) -> bool:
    words = _read(pid, "cmdline").split(b"\0")
    return any(word.endswith(b"cleaner_process.py") for word in words) and (
        str(command).encode() in words
    )


def _is_over(pid: int) -> bool:
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] in ([], [b"Z"], [b"X"])


def _words(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")[:60]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(pid: int, name: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


if __name__ == "__main__":
    main()
