"""Tasks for the tests of engines: `scale.quick_tasks:NAME`. No torch."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from compilescope.base.errors import ToolError
from compilescope.scale.jobs.job import Desk, Job, JobLimits, Verdict
from compilescope.scale.jobs.work import state_of


def make(
    name: str, task: str, limits: JobLimits = JobLimits(), /, *, gpus: float = 0, **payload: Any
) -> Job:
    return Job(
        name=name, task=f"scale.quick_tasks:{task}", payload=payload, limits=limits, gpus=gpus
    )


def echo(payload: dict[str, Any], desk: Desk) -> Verdict:
    return Verdict(state="ok", value=payload)


def note(payload: dict[str, Any], desk: Desk) -> Verdict:
    """Append the name to a file, once the gate lets it: how often was it run?"""
    gate = payload.get("gate")
    while gate is not None and payload["name"] not in Path(gate).read_text().split():
        time.sleep(0.02)
    with Path(payload["file"]).open("a") as file:
        file.write(payload["name"] + "\n")
    return Verdict(state="ok")


def program(payload: dict[str, Any], desk: Desk) -> Verdict:
    command = payload.get("command") or [sys.executable, "-c", payload["code"]]
    ended = desk.run(command, os.environ)
    return Verdict(
        state=state_of(ended),
        reason=ended.reason,
        value={"stdout": ended.stdout.decode(), "folder": str(desk.folder)},
    )


def keep(payload: dict[str, Any], desk: Desk) -> Verdict:
    folder = desk.folder / "kept"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "link").symlink_to("/etc/hostname")
    desk.keep(folder)
    return Verdict(state="ok")


def keep_elsewhere(payload: dict[str, Any], desk: Desk) -> Verdict:
    desk.keep(Path("/etc"))
    return Verdict(state="ok")


def die(payload: dict[str, Any], desk: Desk) -> Verdict:
    os.kill(os.getpid(), payload["signal"])
    raise AssertionError("unreachable")


def die_once(payload: dict[str, Any], desk: Desk) -> Verdict:
    """Leaves a program running, as a worker does that is killed while one runs."""
    mark = Path(payload["file"])
    if mark.exists():
        return Verdict(state="ok", value={"child": int(mark.read_text())})
    code = (
        "import os, signal, time, pathlib"
        f"; pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))"
        "; os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)"
    )
    desk.run([sys.executable, "-c", code], os.environ)
    raise AssertionError("unreachable")


def after(payload: dict[str, Any], desk: Desk) -> Verdict:
    """Ends once there is something in a file."""
    file = Path(payload["file"])
    while not file.exists() or not file.read_text():
        time.sleep(0.02)
    return Verdict(state="ok")


def sleep(payload: dict[str, Any], desk: Desk) -> Verdict:
    time.sleep(payload["seconds"])
    return Verdict(state="ok")


def fail(payload: dict[str, Any], desk: Desk) -> Verdict:
    kinds: dict[str, BaseException] = {
        "tool": ToolError("The tool says so."),
        "value": ValueError("first\nsecond"),
        "exit": SystemExit(3),
        "memory": MemoryError(),
        "unspeakable": _Unspeakable(),
    }
    raise kinds[payload["kind"]]


def nothing(payload: dict[str, Any], desk: Desk) -> None:
    return None


def no_json(payload: dict[str, Any], desk: Desk) -> Verdict:
    return Verdict(state="ok", value={"what": object()})


def lock_folder(payload: dict[str, Any], desk: Desk) -> Verdict:
    """A folder that is hard to remove."""
    inner = desk.folder / "locked"
    inner.mkdir()
    (inner / "file").write_text("x")
    inner.chmod(0)
    return Verdict(state="ok")


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError
