"""Runs for the tests of the gate, of what it writes and of its command."""

from __future__ import annotations

from pathlib import Path

from builders import ROOT, event, frame, run_of
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileFailed,
    FailedGuard,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.record.event import Event, encode
from compilescope.record.home import create_run
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame

CODE = CodeRef(f"{ROOT}/model.py", 6, "forward")
LIBRARY = "/venv/lib/python3.11/site-packages/faux/ops.py"
HOSTILE = "<script>&\"' %,::\r\n]]>\x00\x1b[31m\ufffe\u202e {0} [a](b) é" + "y" * 200


def graph() -> Event:
    return event(GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE), number=1)


def a_break(line: int = 8, source: str = "        if h.mean() > 0:", **fields: object) -> Event:
    body = GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170", frame=CODE)
    return event(body, number=10 + line, stack=(frame(line, source=source, **fields),))


def a_library_break() -> Event:
    return a_break(40, "x.item()", file=LIBRARY, origin="library")


def a_recompile(subject: str = "x.size()[0]", *, file: str = CODE.file, refused: str = "") -> Event:
    guard = FailedGuard(
        f"{subject} == 2", subject, "2", "3", "TENSOR_MATCH", Frame(file, 9, "forward", source="y")
    )
    body = Recompile(CODE, (CacheEntryMiss("0/0", (guard,)),), refused=refused)  # type: ignore[arg-type]
    return event(body, number=300, stack=(frame(),))


def a_failure(error: str = "RuntimeError", *, line: int = 8) -> Event:
    message = f"backend='toy' raised:\n{error}: no such op"
    body = CompileFailed("BackendCompilerFailed", message, backend="toy", frame=CODE)
    return event(body, number=400 + line, stack=(frame(line),))


def an_eager_function(cause: str = "disabled", reason: str = "Dynamo tracing is disabled") -> Event:
    return event(FrameSkipped(CODE, cause, reason), number=500)  # type: ignore[arg-type]


def hostile_run() -> Run:
    body = GraphBreak(gb_type=HOSTILE, gb_id="GB0170", explanation=HOSTILE, hints=(HOSTILE,))
    stack = (frame(file=f"{ROOT}/{HOSTILE[:80]}.py", source=HOSTILE, function=HOSTILE[:40]),)
    return run_of(graph(), event(body, number=2, stack=stack))


def on_disk(home: Path, run: Run) -> Path:
    """The run as `compilescope run` would have left it."""
    folder = create_run(home, run.header)
    lines = b"".join(encode(one) + b"\n" for one in run.events)
    (folder / "events-0.jsonl").write_bytes(lines)
    return folder
