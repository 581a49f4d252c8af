"""Our end of the warm process: asks it to run a program, each time in a new forked child.

A forked child must behave as a new interpreter would. Where it could not, the answer is None and
the caller starts a new interpreter.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from compilescope.base.processes.deadline import clock
from compilescope.base.processes.outcome import ProcessEnd
from compilescope.base.processes.worker import WarmWorker
from compilescope.change.repair.trials.warm.environments import COLD, Imports, differing, plain

_START = Path(__file__).parent / "start.py"
_START_S = 300.0
"""To import torch. Chosen: minutes more than a slow machine needs; past it fresh processes are
used."""
_ANSWER_S = 600.0
"""For a task of ours, such as judging all replays of a version. Chosen likewise."""


class WarmParent:
    """Started by the first run; everything says None where a fresh process is needed instead."""

    def __init__(self) -> None:
        self._worker: WarmWorker | None = None
        self.start_s = 0.0
        """What it took to import everything."""
        self._environment: dict[str, str] = {}
        self._imports: Imports = []
        """What it imports first, for a program that changes variables meanwhile."""
        self._wanted: Imports | None = None
        """What would have to come first for the program that could not be run."""
        self._changed_for: set[tuple[str, ...]] = set()
        """Which programs it was started anew for, each once."""
        self._modules: frozenset[str] = frozenset()
        self.reason = "" if _can_fork() else "this system cannot fork such processes"
        """Why there is none; empty where there is, or may be."""

    def __enter__(self) -> WarmParent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_up(self) -> bool:
        return self._worker is not None

    def prepare(self, environment: Mapping[str, str], limit_s: float = _START_S) -> None:
        """Start it, if it can be and is not yet."""
        if not self.reason and not self.is_up:
            self._start(plain(environment), limit_s)

    def start_anew(self, command: Sequence[str], limit_s: float = _START_S) -> bool:
        """After a run that was not possible: where only variables stand in the way which the
        program sets, one that sets them before it imports torch, as the program does."""
        program = (os.getcwd(), *command)
        imports, self._wanted = self._wanted, None
        if imports is None or program in self._changed_for:
            return False
        self._changed_for.add(program)
        self.close()
        self._imports = imports
        self._start(self._environment, limit_s)
        return self.is_up

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        stdin: bytes = b"",
        limit_s: float = 300.0,
        started: Callable[[int], None] | None = None,
        enough: Callable[[], bool] | None = None,
    ) -> ProcessEnd | str:
        """As `run_process` does; in words why that is not possible here. `enough` is asked now and
        then, and ends it."""
        self.prepare(environment)
        reason = self.reason or self._objection(command, environment)
        if reason:
            return reason
        (folder / "stdin").write_bytes(stdin)
        begun = clock()
        order = {
            "command": list(command),
            "environment": dict(environment),
            "folder": str(folder),
            "cwd": os.getcwd(),
        }
        found = self._order(order, limit_s, started, enough)
        if found is None:
            return self.reason
        status, timed_out = found
        cold = folder / COLD
        if cold.exists():
            told = json.loads(cold.read_bytes())
            cold.unlink()
            self._wanted = told["imports"]
            return str(told["reason"])
        seconds = clock() - begun
        out, err = _written(folder / "stdout"), _written(folder / "stderr")
        return ProcessEnd(status, timed_out, out, err, seconds)

    def ask(self, task: str, payload: Any, folder: Path, limit_s: float = _ANSWER_S) -> Any | None:
        """Call `module:function` of ours where torch is imported already."""
        if not self.is_up:
            return None
        answer = folder / "answer.json"
        order = {"task": task, "payload": payload, "answer": str(answer)}
        found = self._order(order, limit_s, None)
        if found != (0, False):
            return None
        return json.loads(answer.read_bytes())

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            # Not asked to leave: while it imports torch it would not hear that for seconds.
            worker.end()

    def _start(self, environment: dict[str, str], limit_s: float) -> None:
        begun = clock()
        command = [sys.executable, str(_START), json.dumps(self._imports)]
        # Plain files, as the program will have: Python sets up its streams by what they are.
        with tempfile.TemporaryFile() as source:
            self._worker = WarmWorker(command, env=environment, stdin=source)
        self._environment = environment
        said = self._worker.hear(limit_s)
        self.start_s = clock() - begun
        hello = json.loads(said or "{}")
        if not hello or not hello["safe"]:
            self._give_up("it cannot be forked" if hello else "the warm process did not start")
        else:
            self._modules = frozenset(hello["modules"])

    def _objection(self, command: Sequence[str], environment: Mapping[str, str]) -> str:
        if command[0] != sys.executable or len(command) < 2:
            return "it is another Python"
        names = differing(environment, self._environment)
        if names:
            return f"it is started with another {names[0]}"
        first = command[1]
        folder = Path.cwd() if first in ("-m", "-c") else Path(first)
        folder = folder if folder.is_dir() else Path(os.path.realpath(folder)).parent
        for entry in folder.glob("*"):
            name = entry.name.partition(".")[0]
            # A folder that nobody may look into is none: `os.path` says so without raising.
            package = os.path.exists(entry / "__init__.py")
            module = package or entry.suffix in (".py", ".so", ".pyd")
            if name in self._modules and module:
                return f"{entry.name} beside it hides a module of that name"
        return ""

    def _order(
        self,
        order: dict[str, Any],
        limit_s: float,
        started: Callable[[int], None] | None,
        enough: Callable[[], bool] | None = None,
    ) -> tuple[int, bool] | None:
        """The status of the child, and whether it took too long. None where the warm process is
        lost."""
        assert self._worker is not None
        given = json.dumps(order).encode()
        found = self._worker.run(given, limit_s, started=started, enough=enough)
        if found is None:
            self._give_up("the warm process is gone")
        return found

    def _give_up(self, reason: str) -> None:
        self.reason = reason
        with suppress(OSError):
            self.close()


def _can_fork() -> bool:
    """Other systems' libraries do not survive a fork without an exec."""
    return sys.platform.startswith("linux") and hasattr(os, "fork")


def _written(path: Path) -> bytes:
    """What a child wrote; nothing where it was killed before it had opened the file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
