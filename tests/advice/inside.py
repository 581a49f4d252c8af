"""In the child: one run of a program, under capture or with its values kept; it never returns."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import random
import runpy
import socket
import sys
import threading
import time
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import torch

from advice.values import Kept
from compilescope.base.version import VERSION
from compilescope.instrument.recorder.journal import DiskJournal
from compilescope.instrument.recorder.session import recording
from compilescope.instrument.torchapi.regions import CompiledRegion, Regions
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run, new_run_id


def modules_of_a_compilation() -> list[str]:
    """What is imported when a first program compiles, breaks and trains."""
    from compilescope.instrument.recorder.journal import MemoryJournal

    before = set(sys.modules)

    def step(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        torch._dynamo.graph_break()
        return (y * 2).sum()

    with recording(MemoryJournal()):
        compiled = torch.compile(step, backend="aot_eager")
        for size in (3, 4):
            compiled(torch.ones(size, requires_grad=True)).backward()
    return [name for name in sys.modules if name not in before]


def run_program(asked: dict[str, Any]) -> None:
    """`mode`: `capture`, `eager` or `compiled`; the last two keep values."""
    out = Path(asked["out"])
    status = 1
    try:
        _settle(asked, out)
        if asked["mode"] == "capture":
            status = _captured(asked, out)
        else:
            status = _kept(asked, out)
    except BaseException:  # The border of a worker.
        (out / "broken").write_text(traceback.format_exc())
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _settle(asked: dict[str, Any], out: Path) -> None:
    """As Python starts a script: its folder, its arguments, its streams."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(out / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    os.chdir(asked["folder"])
    sys.argv = [asked["script"], *asked["args"]]
    sys.path[0] = str(Path(asked["folder"], asked["script"]).parent)
    os.environ.update(asked["environment"])
    random.seed(0)
    torch.manual_seed(0)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(0)


def _captured(asked: dict[str, Any], out: Path) -> int:
    header = RunHeader(
        run=new_run_id("program"),
        tool=VERSION,
        command=(asked["script"], *asked["args"]),
        cwd=asked["folder"],
        root=str(Path(asked["folder"], asked["script"]).parent),
        host=socket.gethostname(),
        started_ns=time.time_ns(),
        main_pid=os.getpid(),
    )
    folder = create_run(out / "runs", header)
    with recording(DiskJournal(folder)):
        status, _ = _script(asked, out)
    ended = msgspec.structs.replace(header, ended_ns=time.time_ns(), exit_status=status)
    write_header(folder, ended)
    (out / "run").write_text(str(folder))
    return status


def _kept(asked: dict[str, Any], out: Path) -> int:
    kept, given = Kept(), Kept()
    if asked["functions"]:
        _follow(kept, asked)
    else:
        given = kept
    compiled = asked["mode"] == "compiled"

    def on_call(region: CompiledRegion, args: Any, kwargs: Any) -> Any:
        with regions.calling("compiled" if compiled else "eager"):
            function = region.compiled if compiled else region.eager
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                given.raised(region.name, error)
                raise
        given.called(region.name, result)
        return result

    regions = Regions(on_call)
    regions.install()
    status, names = _script(asked, out)
    (out / "values.json").write_text(json.dumps(kept.told(names)))
    return status


def _follow(kept: Kept, asked: dict[str, Any]) -> None:
    """Keeps what outermost calls of these functions return."""
    wanted = {name for each in asked["functions"] for name in (each, f"{each}.forward")}
    local = threading.local()

    def on_event(frame: types.FrameType, event: str, returned: Any) -> None:
        code = frame.f_code
        # Python 3.10 does not know to which class a function belongs.
        name = getattr(code, "co_qualname", code.co_name)
        own = name in wanted and code.co_filename.startswith(asked["folder"])
        if not own or event not in ("call", "return"):
            return
        local.depth = getattr(local, "depth", 0) + (1 if event == "call" else -1)
        if local.depth == 0:
            kept.called(name, returned)

    threading.setprofile(on_event)
    sys.setprofile(on_event)


def _script(asked: dict[str, Any], out: Path) -> tuple[int, dict[str, Any]]:
    """The exit status, and the names that the program left behind."""
    names: dict[str, Any] = {}
    status = 0
    try:
        with _names_of_main(names):
            runpy.run_path(str(Path(asked["folder"], asked["script"])), run_name="__main__")
    except SystemExit as end:
        status = _status_of(end)
    except BaseException as error:
        status = 1
        (out / "error").write_text(f"{type(error).__name__}: {error}")
        traceback.print_exc()
    atexit._run_exitfuncs()
    return status, names


@contextlib.contextmanager
def _names_of_main(names: dict[str, Any]) -> Iterator[None]:
    """Also of a program that ends by an exception: runpy gives its names back only at the end."""
    made = runpy._run_code

    def run_code(code: Any, run_globals: dict[str, Any], *rest: Any, **more: Any) -> Any:
        try:
            return made(code, run_globals, *rest, **more)
        finally:
            names.update(run_globals)

    runpy._run_code = run_code
    try:
        yield
    finally:
        runpy._run_code = made


def _status_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1
