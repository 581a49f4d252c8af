"""Runs small programs twice, plainly and under capture, and tells the two apart."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import compilescope
from compilescope.record.event import Event
from compilescope.record.home import list_runs
from compilescope.record.run import Run, read_run

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
TIMEOUT = 900
"""Seconds. Only what never ends takes as long, however busy the machine is."""
# With its folder: a checkout may well be called compilescope, and then every path names us.
OUR_CODE = os.path.dirname(compilescope.__file__).encode() + os.sep.encode()

_FOREIGN = ("PYTEST_", "COMPILESCOPE_", "TORCH", "PYTHONPATH", "RANK", "WORLD_SIZE")
_LOG_PREFIX = re.compile(rb"^(\[rank\d+\]:)?([VDIWE])\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ", re.M)
_ADDRESS = re.compile(rb"0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    status: int
    stdout: bytes
    stderr: bytes


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without what this test session or its user has set, so that both runs start alike."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    # Sets of names are printed and walked by torch: both runs need the same order.
    alike = {"PYTHONHASHSEED": "0", "NO_COLOR": "1", "COMPILESCOPE_AUTO_RUN": "0"}
    return {**env, **alike, **(extra or {})}


def start(
    command: list[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: int = subprocess.DEVNULL,
    **options: Any,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=environment(env),
        cwd=cwd or PROGRAMS,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def finish(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> Ended:
    try:
        stdout, stderr = process.communicate(stdin, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Ended(process.returncode, stdout, stderr)


def captured_command(home: Path, *words: str) -> list[str]:
    """`compilescope run --dir HOME WORDS`."""
    return [sys.executable, "-m", "compilescope", "run", "--dir", str(home), *words]


def run_captured(home: Path, *words: str, **options: Any) -> Ended:
    return finish(start(captured_command(home, *words), **options))


def run_both(
    home: Path, *words: str, stdin: bytes | None = None, **options: Any
) -> tuple[Ended, Ended]:
    """The program plainly, and quietly captured; side by side, for most of it is `import torch`."""
    pipe = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    plain = start([sys.executable, *words], stdin=pipe, **options)
    captured = start(captured_command(home, "-q", *words), stdin=pipe, **options)
    return finish(plain, stdin), finish(captured, stdin)


def same(text: bytes) -> bytes:
    """Without what differs between any two runs: times, pids and addresses in torch's logs."""
    return _ADDRESS.sub(b"0x", _LOG_PREFIX.sub(rb"\1\2 ", text))


def assert_transparent(plain: Ended, captured: Ended) -> None:
    assert captured.status == plain.status
    assert same(captured.stdout).decode() == same(plain.stdout).decode()
    assert same(captured.stderr).decode() == same(plain.stderr).decode()
    assert OUR_CODE not in captured.stderr


def show(home: Path) -> dict[str, Any]:
    """`compilescope show --json` of the latest run. In this process: the run is what is tested."""
    from compilescope.apps.cli.commands.show import COMMAND

    ended = CliRunner().invoke(COMMAND, ["--dir", str(home), "--json"], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def latest_run(home: Path) -> Run:
    return read_run(latest_folder(home))


def latest_folder(home: Path) -> Path:
    return list_runs(home)[0][0][0]


def functions_of(run: Run, stage: str = "dynamo") -> list[tuple[int, str]]:
    """(pid, function) of every graph that was captured."""
    return [(event.pid, body.frame.function) for event, body in graphs_of(run, stage)]


def graphs_of(run: Run, stage: str = "dynamo") -> Iterator[tuple[Event, Any]]:
    from compilescope.record.bodies import GraphCaptured

    return ((event, body) for event, body in run.of(GraphCaptured) if body.stage == stage)


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)
