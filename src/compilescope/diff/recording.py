"""A comparison as a record: one event for each value, so that the views draw it."""

from __future__ import annotations

import math
import os
import platform
import socket
import sys
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

import torch

from compilescope.diff.error_record import error_grid, error_profiles
from compilescope.diff.values import ValueDiff
from compilescope.errors import ToolError
from compilescope.model import bodies
from compilescope.model.artifacts import MemoryArtifacts
from compilescope.model.event import Event, encode
from compilescope.model.header import RunHeader
from compilescope.model.home import create_run, new_run_id
from compilescope.model.outcomes import WorstValue
from compilescope.model.run import Run
from compilescope.model.stack import Frame, origin_of
from compilescope.version import VERSION

if TYPE_CHECKING:
    from compilescope.diff.report import DiffReport

_DEVICES = ("cuda", "xpu", "mps")


def recorded(report: DiffReport) -> Run:
    return Run(_header(report), list(_events(report)), MemoryArtifacts())


def write_recorded(report: DiffReport, home: Path) -> Path:
    """A run in `home`; its folder comes back."""
    run = recorded(report)
    folder = create_run(home, run.header)
    try:
        lines = b"".join(encode(event) + b"\n" for event in run.events)
        (folder / "events-0.jsonl").write_bytes(lines)
    except OSError as error:
        raise ToolError(f"Cannot write the run under {home}: {error.strerror}.") from None
    return folder


def _header(report: DiffReport) -> RunHeader:
    now = time_ns()
    return RunHeader(
        run=new_run_id(f"diff-{report.model_name}"),
        tool=VERSION,
        command=(_program(sys.argv[0]), *sys.argv[1:]),
        cwd=os.getcwd(),
        root=os.getcwd(),
        host=socket.gethostname(),
        started_ns=int(report.timestamp * 1e9) or now,
        ended_ns=now,
        main_pid=os.getpid(),
        exit_status=0,
    )


def _program(path: str) -> str:
    """The name that a person would type: of a package that runs itself, the package's."""
    folder, name = os.path.split(path)
    return os.path.basename(folder) if name == "__main__.py" and folder else name


def _events(report: DiffReport) -> list[Event]:
    device = next((name for name in _DEVICES if _is_there(name)), "cpu")
    started = bodies.ProcessStarted(
        argv=tuple(sys.argv),
        python=platform.python_version(),
        torch=str(torch.__version__),
        parent_pid=os.getppid(),
        device=device,
    )
    found: list[tuple[Any, tuple[Frame, ...]]] = [(started, ())]
    guilty = _guilty(report)
    stack = tuple(_frame(item) for item in report.guilty[:1] if getattr(item, "file", ""))
    for diff in report.diffs:
        wrong = diff.verdict == "fail"
        body = tensor_diff(report, diff, guilty if wrong else "")
        found.append((body, stack if wrong else ()))
    found.append((bodies.ProcessEnded(), ()))
    # The order of events is that of their times.
    now = time_ns()
    return [
        Event(id=f"0.{number}", time_ns=now + number, pid=os.getpid(), body=body, stack=frames)
        for number, (body, frames) in enumerate(found)
    ]


def tensor_diff(report: DiffReport, diff: ValueDiff, guilty: str = "") -> bodies.TensorDiff:
    numbers = diff.numbers
    worst = () if numbers is None else tuple(_worst(element) for element in numbers.worst)
    return bodies.TensorDiff(
        path=diff.path,
        verdict=diff.verdict,
        reason=diff.reason,
        model=report.model_name,
        reference=report.reference_backend,
        test=report.test_backend,
        # JSON has no infinity: a figure that is not finite is told in the reason.
        metrics={name: value for name, value in diff.metrics.items() if math.isfinite(value)},
        guilty=guilty,
        role=diff.kind,
        shape=numbers.shape if numbers is not None else None,
        dtype=numbers.dtype if numbers is not None else "",
        worst=worst,
        errors=error_grid(numbers.errors) if numbers is not None else None,
        profiles=error_profiles(numbers) if numbers is not None and diff.verdict != "pass" else (),
    )


def _worst(element: Any) -> WorstValue:
    return WorstValue(
        tuple(element.index), _text(element.reference), _text(element.test), _text(element.error)
    )


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _guilty(report: DiffReport) -> str:
    from compilescope.diff.report import guilty_words

    return "; ".join(guilty_words(found) for found in report.guilty[:3])


def _frame(found: Any) -> Frame:
    return Frame(found.file, found.line or 0, "", origin=origin_of(found.file))


def _is_there(name: str) -> bool:
    module = getattr(torch, name, None)
    return bool(module is not None and module.is_available())
