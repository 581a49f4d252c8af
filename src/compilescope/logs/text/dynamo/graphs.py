"""Graphs: those that Dynamo handed to a backend, and the texts of all stages that the log has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.breaks import CompileReason
from compilescope.logs.text.dynamo.frames import Frames
from compilescope.logs.text.dynamo.record import LogRecord, frame_key
from compilescope.record.bodies import GraphCaptured, GraphStage, KernelEmitted

_CALLING = re.compile(r"Step 2: calling compiler function (?P<name>.*\S)\s*$")
_NODE = re.compile(r"^[ \t]+(?P<name>\w+)(?:[ \t]*:[ \t]*\"[^\"\n]*\")? = (?P<value>[^\n;]+)", re.M)
_BARE = re.compile(r"^(?:(?:self(?:\.\w+|\[[^\]]*\])*|[A-Za-z_]\w*)\s*|getattr\(self[^()]*\).*)$")
_INPUTS = re.compile(r"^[ \t]*def forward\(self(?P<inputs>[^\n]*)\):", re.M)
_INNER = re.compile(r"^[ \t]+class \w+\(", re.M)
_TABLE_ROW = re.compile(r"^(?P<op>placeholder|get_attr|call_\w+|output)\s", re.M)
_TITLE = re.compile(r"^[ \t]*=+ (?P<title>[^=\n]+?) =+[ \t]*$", re.M)
_KERNEL = re.compile(
    r"^(?:async_compile\.\w+\(|)(\w+) = async_compile\.(?:triton|cpp\w*|cuda)", re.M
)
_OUTPUT_FILE = re.compile(r"Output code written to: (?P<file>\S+)")
_AOT_STAGES: tuple[tuple[str, GraphStage], ...] = (
    ("joint", "aot_joint"),
    ("forward", "aot_forward"),
    ("backward", "aot_backward"),
    ("inference", "aot_inference"),
)
_MOST_REASON = 500
"""Letters. Chosen: a few lines."""


@dataclass
class _OpenGraph:
    """What is known of the graph that a frame is about to hand over."""

    reason: CompileReason | None = None
    text: str = ""
    table: str = ""
    time_ns: int = 0
    compile_id: str | None = None


class Graphs:
    """The graphs of one process."""

    def __init__(self, console: Console, process: ConsoleProcess, frames: Frames) -> None:
        self._console = console
        self._process = process
        self._frames = frames
        self._open = _OpenGraph()
        self._steps = False
        """The log says when a backend is called; texts alone are then no graphs of their own."""

    def cut_because(self, record: LogRecord, reason: CompileReason) -> None:
        self._flush_text()
        self._open = _OpenGraph(reason, compile_id=record.compile_id, time_ns=record.time_ns)

    def text(self, record: LogRecord) -> bool:
        """Of the artifacts that print graphs and code."""
        name = record.artifact
        if name in ("graph_code", "graph"):
            if frame_key(self._open.compile_id) != frame_key(record.compile_id):
                self._flush_text()
                self._open = _OpenGraph()
            self._open.compile_id = record.compile_id
            self._open.time_ns = record.time_ns
            if name == "graph_code":
                self._open.text = _without_banner(record.text)
            else:
                self._open.table = record.text
            return True
        if name in ("aot_graphs", "aot_joint_graph", "post_grad_graphs"):
            return self._later_stage(record)
        if name == "output_code":
            return self._output_code(record)
        return False

    def calling(self, record: LogRecord) -> bool:
        """`Step 2`: the backend gets the graph."""
        found = _CALLING.match(record.title)
        if found is None:
            return False
        self._steps = True
        same = frame_key(self._open.compile_id) == frame_key(record.compile_id)
        taken = self._open if same else _OpenGraph()
        if not same:
            self._flush_text()
        self._open = _OpenGraph()
        self._process.handed = record.compile_id
        self._process.backend = found["name"]
        self._write(taken, record.compile_id, record.time_ns, found["name"])
        return True

    def flush(self) -> None:
        self._flush_text()
        self._open = _OpenGraph()

    def _flush_text(self) -> None:
        held = self._open
        if (held.text or held.table) and not self._steps:
            self._write(held, held.compile_id, held.time_ns, None)
            held.text = held.table = ""

    def _write(
        self, held: _OpenGraph, compile_id: str | None, time_ns: int, backend: str | None
    ) -> None:
        compiled = self._frames.of(compile_id)
        nodes, ops = _counted(held)
        reason = held.reason
        body = GraphCaptured(
            stage="dynamo",
            text=self._console.writer.artifact(held.text, "py") if held.text else None,
            nodes=nodes,
            ops=ops,
            backend=backend,
            frame=compiled.code if compiled else None,
            region=compiled.entered if compiled else None,
            ended_by_break=reason.broken if reason else None,
            reason=reason.reason[:_MOST_REASON] if reason else "",
        )
        self._emit(body, compile_id, time_ns)

    def _later_stage(self, record: LogRecord) -> bool:
        text = record.text
        title = _TITLE.search(text)
        words = (title["title"] if title else record.title).lower()
        stage: GraphStage | None = "post_grad" if record.artifact == "post_grad_graphs" else None
        if stage is None:
            stage = next((s for word, s in _AOT_STAGES if word in words), None)
        if stage is None:
            return False
        code = _without_banner(text)
        ops = len(re.findall(r"^[ \t]+\w+(?::[ \t]*\"[^\"\n]*\")? = (?!self\.)", code, re.M))
        body = GraphCaptured(stage, text=self._console.writer.artifact(code, "py"), ops=ops)
        self._emit(body, record.compile_id, record.time_ns)
        return True

    def _output_code(self, record: LogRecord) -> bool:
        text = record.text
        file = _OUTPUT_FILE.match(text)
        if file is not None and not record.rest:
            return True
        code = text.partition("\n")[2] if text.startswith("Output code:") else text
        kernels = tuple(dict.fromkeys(_KERNEL.findall(code)))
        body = KernelEmitted(self._console.writer.artifact(code, "py"), kernels=kernels)
        self._emit(body, record.compile_id, record.time_ns)
        return True

    def _emit(self, body: GraphCaptured | KernelEmitted, compile_id: str | None, ns: int) -> None:
        self._console.event(
            self._process, body, compile_id=compile_id, time_ns=ns, epoch=self._frames.epoch
        )


def _without_banner(text: str) -> str:
    """The code alone: `TRACED GRAPH`, a ruled title and the file of the class come before it."""
    start = text.find("class ")
    if start < 0:
        return text
    return text[start:].rstrip() + "\n"


def _counted(held: _OpenGraph) -> tuple[int | None, int | None]:
    """Nodes and operations, by the text: one assignment is one node."""
    if held.text:
        # Graphs within the graph, as of `torch.cond`, come below it.
        text = _INNER.split(held.text, maxsplit=1)[0]
        values = [found["value"].strip() for found in _NODE.finditer(text)]
        ops = sum(not _BARE.match(value) for value in values)
        attributes = sum(value.startswith("self.") for value in values)
        inputs = _INPUTS.search(held.text)
        count = (
            len(re.findall(r"(?<!\w)\w+\s{0,8}(?=:\s{0,8}\")", inputs["inputs"])) if inputs else 0
        )
        return ops + attributes + count + 1, ops
    if held.table:
        rows = [row["op"] for row in _TABLE_ROW.finditer(held.table)]
        return len(rows) or None, sum(op.startswith("call_") for op in rows) if rows else None
    return None, None
