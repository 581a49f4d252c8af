"""One process that runs Dynamo: its records, in order, into events."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.breaks import Breaks, read_reason
from compilescope.logs.text.dynamo.frames import Compiled, Frames
from compilescope.logs.text.dynamo.graphs import Graphs
from compilescope.logs.text.dynamo.recompiles import Guards, Recompiles
from compilescope.logs.text.dynamo.record import LogRecord, frame_key
from compilescope.logs.text.dynamo.skips import Skips, read_error
from compilescope.logs.text.lines import plain
from compilescope.record.bodies import CompileTime, LogLine

GRAPH_ARTIFACTS = ("graph_code", "graph", "aot_graphs", "aot_joint_graph", "post_grad_graphs")
ARTIFACTS = frozenset(
    {"graph_breaks", "recompiles", "recompiles_verbose", "guards", "output_code", *GRAPH_ARTIFACTS}
)
"""Those whose records are read as a whole."""

STARTS = (
    b"torchdynamo start compiling ",
    b"Step 1: torchdynamo start tracing ",
    b"Step 2: calling compiler function ",
    b"COMPILING GRAPH due to ",
    b"Restarting analysis due to ",
    b"WON'T CONVERT ",
    b"Skipping frame ",
    b"skipping: ",
    b"torch._dynamo hit config.",
    b"step triggered compile",
    b"create_symbol ",
    b"TorchDynamo attempted to trace the following",
)
"""How the other records begin that tell something."""
_FIRST_WORDS = frozenset(start.split(b" ", 1)[0] for start in STARTS)
_HARMLESS = (b"skipfiles", b"no tensor-related objects")
_TOLD = b"Graph break from `Tensor.item()`"
"""A warning beside the break itself."""
_MOST_LINES = 200
"""Different warnings and errors that are kept. Chosen: a bound for memory."""


def wanted(artifact: str, message: bytes, level: bytes) -> bool:
    """Is there anything to learn from a record that begins so?"""
    if artifact:
        return artifact in ARTIFACTS
    if message.split(b" ", 1)[0] in _FIRST_WORDS and message.startswith(STARTS):
        if not message.startswith(b"skipping: ") or b"contextlib.py)" in message:
            return True
        return not any(word in message for word in _HARMLESS)
    return level in (b"W", b"E", b"C")


class DynamoProcess:
    """The state of one process."""

    def __init__(self, console: Console, process: ConsoleProcess) -> None:
        self._console = console
        self._process = process
        self._frames = Frames()
        self._breaks = Breaks(console, process, self._frames)
        self._recompiles = Recompiles(console, process, self._frames)
        self._graphs = Graphs(console, process, self._frames)
        self._guards = Guards(console, process, self._frames)
        self._skips = Skips(console, process, self._frames, self._breaks, self._recompiles)
        self._lines: dict[tuple[str, str], int] = {}
        self._ended_in_order = False
        self._first_id: str | None = None
        self._records: dict[bytes, Callable[[LogRecord], bool]] = {
            STARTS[0]: self._started,
            STARTS[1]: self._started,
            STARTS[2]: self._called,
            STARTS[3]: self._cut,
            STARTS[4]: self._restarted,
            STARTS[5]: self._skips.wont_convert,
            STARTS[6]: self._skips.loop,
            STARTS[7]: self._skips.skipping,
            STARTS[8]: self._hit_limit,
            STARTS[9]: self._stepped,
            STARTS[10]: self._recompiles.symbol,
            STARTS[11]: self._exited,
        }

    def record(self, record: LogRecord) -> bool:
        """Take a record; False where it should have been understood and was not."""
        self._process.now_ns = max(self._process.now_ns, record.time_ns)
        self._seen(record)
        artifact = record.artifact
        if artifact == "graph_breaks":
            return self._breaks.told(record)
        if artifact in ("recompiles", "recompiles_verbose"):
            return self._recompiles.told(record)
        if artifact == "guards":
            text = self._guards.told(record)
            if text:
                self._recompiles.guarded(record.compile_id, text)
            return True
        if artifact:
            return self._graphs.text(record)
        for start, read in self._records.items():
            if record.first.startswith(start):
                return read(record)
        self._note(record)
        return True

    def _seen(self, record: LogRecord) -> None:
        compiled = self._frames.by_id.get(frame_key(record.compile_id))
        if compiled is not None:
            compiled.end_ns = max(compiled.end_ns, record.time_ns)

    def _started(self, record: LogRecord) -> bool:
        before = self._frames.current
        compiled = self._frames.started(record)
        if compiled is None:
            return True
        self._breaks.flush()
        self._graphs.flush()
        if self._first_id is None:
            self._first_id = frame_key(compiled.compile_id)
        if before is not None:
            self._ended(before)
        self._recompiles.started(compiled)
        return True

    def _called(self, record: LogRecord) -> bool:
        return self._graphs.calling(record)

    def _cut(self, record: LogRecord) -> bool:
        reason = read_reason(record.text)
        if reason is None:
            return False
        self._graphs.cut_because(record, reason)
        self._breaks.cut_because(record, reason)
        return True

    def _restarted(self, record: LogRecord) -> bool:
        self._breaks.restarted(record.compile_id)
        compiled = self._frames.of(record.compile_id)
        if compiled is not None and len(compiled.restarts) < 100:
            compiled.restarts.append(record.title.removeprefix("Restarting analysis due to "))
        return True

    def _stepped(self, record: LogRecord) -> bool:
        """torch 2.9 reports no break where it cannot resume after one: only the exception."""
        if record.rest:
            self._breaks.unreported(read_error(record.lines())[1])
        return True

    def _exited(self, record: LogRecord) -> bool:
        """What Dynamo says when its process ends in order."""
        self._ended_in_order = True
        return True

    def _hit_limit(self, record: LogRecord) -> bool:
        return self._recompiles.hit_limit(record) is not None

    def _note(self, record: LogRecord) -> None:
        if record.level in ("W", "E", "C") and not record.first.startswith(_TOLD):
            level = "warning" if record.level == "W" else "error"
            key = (level, plain(record.first)[:500])
            if key in self._lines or len(self._lines) < _MOST_LINES:
                self._lines[key] = self._lines.get(key, 0) + 1

    def _ended(self, compiled: Compiled) -> None:
        if compiled.end_ns <= compiled.start_ns or compiled.compile_id is None:
            return
        body = CompileTime(
            compiled.end_ns - compiled.start_ns,
            ok=compiled.kept,
            frame=compiled.code,
            guards=compiled.guards,
            restarts=tuple(compiled.restarts),
        )
        self._console.event(
            self._process,
            body,
            stack=compiled.callers,
            compile_id=compiled.compile_id,
            time_ns=compiled.end_ns,
            epoch=compiled.epoch,
        )

    @property
    def cut_head(self) -> bool:
        """The first compilation that is told of was not the process's first."""
        return self._first_id not in (None, "", "0/0") and not str(self._first_id).startswith("!")

    @property
    def cut_tail(self) -> bool:
        """Compilations are told of and the process's end is not."""
        return self._first_id is not None and not self._ended_in_order

    def finish(self) -> None:
        self._breaks.flush()
        self._graphs.flush()
        self._recompiles.finish()
        if self._frames.current is not None:
            self._ended(self._frames.current)
        for (level, text), count in self._lines.items():
            self._console.event(self._process, LogLine("torch", level, text, count))  # type: ignore[arg-type]
