"""The reader of tt-xla's log: loguru's lines, and between them the modules they announce.

A graph begins with the header of its first module and ends where the next one of its thread begins.
Warnings, errors and executions between them are counted.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from compilescope.logs.text.console import Announced, Console, ConsoleProcess
from compilescope.logs.text.lines import UNTAGGED, Tag, plain
from compilescope.logs.text.mlir import ModuleBody, goes_on, run_body
from compilescope.record.bodies import GraphCompiled, GraphExecuted, LogLine
from compilescope.record.logged import ModuleStage, OpPlace
from compilescope.record.stack import CodeRef, Frame

_RUNTIME = re.compile(
    rb"^\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*\]? .*\|\s*(?P<level>\w+)\s*\| (?P<text>.*)"
)
_PYTHON = re.compile(
    rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| (?P<level>[A-Z]+)\s*\| \S+ - (?P<text>.*)"
)
_EXECUTION = b"Starting execution of program"
_LEVELS = {b"WARNING": "warning", b"ERROR": "error", b"CRITICAL": "error", b"FATAL": "error"}
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
# Chosen: bounds for memory: different notes, and letters of each.
_MOST = 200
_LONGEST = 2000


class Notes:
    """Warnings, errors and executions of one log, counted."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: dict[tuple[int, str, str], tuple[ConsoleProcess, str, int]] = {}
        self._runs: dict[tuple[int, str], tuple[ConsoleProcess, int]] = {}

    def line(self, line: bytes, tag: Tag) -> bool:
        if b"|" not in line[:200]:
            return False
        line = line[:_LONGEST]
        found = _PYTHON.match(line) or _RUNTIME.match(line)
        if found is None:
            return False
        process = self._console.process_behind(tag)
        text = plain(found["text"])
        if found["text"].startswith(_EXECUTION):
            _, count = self._runs.get((process.pid, text), (process, 0))
            if count or len(self._runs) < _MOST:
                self._runs[process.pid, text] = (process, count + 1)
        elif found["level"] in _LEVELS:
            self.add(process, _LEVELS[found["level"]], text)
        return True

    def add(self, process: ConsoleProcess, level: str, text: str) -> None:
        key = (process.pid, level, _NUMBER.sub("N", text)[:300])
        known = self._lines.get(key)
        if known is not None:
            self._lines[key] = (process, known[1], known[2] + 1)
        elif len(self._lines) < _MOST:
            self._lines[key] = (process, text[:500], 1)

    def finish(self) -> None:
        for (_, cause), (process, count) in self._runs.items():
            self._console.event(process, GraphExecuted("", cause, count))
        for (_, level, _), (process, text, count) in self._lines.items():
            self._console.event(process, LogLine("tt-xla", level, text, count))  # type: ignore[arg-type]


_LOGURU = re.compile(
    rb"(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d)\.(?P<ms>\d{3}) \(\s*[\d.]+s\) "
    rb"\[(?P<thread>[^\]]{0,40})\]\s*(?P<file>[^\s|]{1,100}):(?P<line>\d{1,7})\s+(?P<level>[^\s|]{1,8})\|"
    rb" ?(?P<text>.*)$"
)
_STAMP = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \(")
_HEADER = re.compile(rb"MLIR Module (?P<name>[\w.-]{1,100}):\s*$")
_OLD_HEADER = re.compile(rb"(?P<name>VHLO|SHLO|TTIR|TTNN) Module(?P<after> after [^:]*)?:\s*$")
_END = b"END OF MLIR MODULE"
_PASS = b"// -----// IR Dump "
_DIAGNOSTIC = re.compile(rb"^(?:loc\(.*\)|[^\s:]{1,300}:\d+:\d+): error: (?P<text>.*)")
_PLAIN_LEVELS = (b"INFO", b"WARN", b"ERR", b"FATL")


@dataclass
class _Body:
    """The module that is being printed."""

    graph: TtGraph | None
    stage: str
    module: ModuleBody
    thread: bytes
    mixed: bool = False


class TtReader:
    """The state of reading one log."""

    noise: tuple[bytes, ...] = ()
    markers = (b"s) [", _END, _PASS, b"RuntimeTTNN")

    def __init__(self) -> None:
        self._console: Console
        self._graphs: dict[tuple[bytes, bytes], TtGraph] = {}
        self._bodies: dict[bytes, _Body] = {}
        self._threads: dict[bytes, bytes] = {}
        self._untagged: _Body | None = None
        self._seen_first = False
        self._ends = self._headers = self._empty = self._other = 0
        self._python = self._verbose = False

    def attach(self, console: Console) -> None:
        self._console = console
        self._notes = Notes(console)

    def skipped(self, lines: int) -> None:
        """Noise is not of this format."""

    @property
    def busy(self) -> bool:
        return bool(self._bodies)

    def run(self, lines: Sequence[bytes], start: int) -> int:
        body = self._untagged
        return run_body(body.module, lines, start) if body is not None else start

    def line(self, line: bytes, tag: Tag) -> bool:
        body = self._bodies.get(tag.text)
        if body is not None and goes_on(line):
            body.module.line(line)
            return True
        if _END in line:
            self._end(tag)
            return True
        found = _LOGURU.match(line)
        if found is None and b"s) [" in line:
            inner = _STAMP.search(line)
            found = _LOGURU.match(line[inner.start() :]) if inner is not None else None
        if found is not None:
            self._loguru(found, tag)
            return True
        if line.startswith(_PASS):
            self._pass_dump(tag)
            return True
        diagnostic = _DIAGNOSTIC.match(line)
        if diagnostic is not None:
            graph = self._graph_of(tag)
            if graph is not None:
                graph.failed(plain(diagnostic["text"]))
                return True
        return self._notes.line(line, tag)

    # Lines of loguru

    def _loguru(self, found: re.Match[bytes], tag: Tag) -> None:
        process = self._console.process_behind(tag)
        self._tick(process, found)
        self._console.tally.formats.add("tt-xla")
        self._console.tally.records += 1
        text, thread, level = found["text"], found["thread"].strip(), found["level"]
        header = _HEADER.search(text) or _OLD_HEADER.match(text)
        if header is not None:
            self._header(_stage(header), thread, tag, process)
            return
        if level not in _PLAIN_LEVELS:
            self._other += 1
        elif level in (b"ERR", b"FATL"):
            graph = self._graphs.get((tag.text, thread)) or self._graph_of(tag)
            if graph is not None:
                graph.failed(plain(text))
            else:
                self._notes.add(process, "error", plain(text))
        elif level == b"WARN":
            self._notes.add(process, "warning", plain(text))

    def _tick(self, process: ConsoleProcess, found: re.Match[bytes]) -> None:
        date, clock = found["date"], found["time"]
        year, month, day = int(date[:4]), int(date[5:7]), int(date[8:])
        if 1970 <= year <= 2200 and 1 <= month <= 12 and 1 <= day <= 31:
            parts = (year, month, day, int(clock[:2]), int(clock[3:5]), int(clock[6:]))
            ns = calendar.timegm(parts) * 10**9 + int(found["ms"]) * 10**6
            process.now_ns = max(process.now_ns, ns)

    def _header(self, stage: str, thread: bytes, tag: Tag, process: ConsoleProcess) -> None:
        self._headers += 1
        process.unstamped = True
        self._close_body(tag, thread)
        key = (tag.text, thread)
        graph = self._graphs.get(key)
        if stage == _FIRST:
            self._finish_graph(key)
            graph = None
            self._seen_first = True
        if graph is None:
            graph = TtGraph(process, process.now_ns, after=process.handed, backend=process.backend)
            graph.announced, process.announced = process.announced, None
            if stage != _FIRST:
                graph.cut = "head"
                self._console.tally.cut_head = self._console.tally.cut_head or not self._seen_first
            self._graphs[key] = graph
        self._threads[tag.text] = thread
        # Locations are the same at every stage, or missing at every stage.
        located = not graph.located and len(graph.stages) < 2
        self._open_body(tag, _Body(graph, stage, ModuleBody(located=located), thread))

    def _open_body(self, tag: Tag, body: _Body) -> None:
        self._bodies[tag.text] = body
        if tag is UNTAGGED:
            self._untagged = body

    def _drop_body(self, tag: Tag) -> _Body | None:
        if not tag.text:
            self._untagged = None
        return self._bodies.pop(tag.text, None)

    def _end(self, tag: Tag) -> None:
        """A module is whole."""
        self._ends += 1
        body = self._drop_body(tag)
        if body is None:
            if self._headers == 0 and self._ends == 1:
                self._console.tally.cut_head = True
                self._begin_headless(tag)
            else:
                self._console.tally.interleaved = "ambiguous"
            return
        self._finish_body(body, whole=not body.mixed)

    def _begin_headless(self, tag: Tag) -> None:
        """The log begins in the middle of a module: its graph goes on with the next header."""
        process = self._console.process_behind(tag)
        graph = TtGraph(process, process.now_ns, cut="head")
        graph.ended("", ModuleBody(located=False), whole=False)
        self._graphs[tag.text, b""] = graph

    def _close_body(self, tag: Tag, thread: bytes) -> None:
        """A header where another module has not ended."""
        headless = self._graphs.pop((tag.text, b""), None)
        if headless is not None and thread:
            self._graphs.setdefault((tag.text, thread), headless)
        body = self._drop_body(tag)
        if body is None:
            return
        if not body.module.lines:
            self._empty += 1
            self._finish_body(body, whole=True)
            return
        if body.stage:
            # Its text runs into another's: two processes wrote at once, and nothing tells whose
            # lines are whose.
            self._console.tally.interleaved = "ambiguous"
        self._finish_body(body, whole=False)

    def _finish_body(self, body: _Body, *, whole: bool) -> None:
        self._python = self._python or body.module.locs.python
        if body.graph is not None:
            body.graph.ended(body.stage, body.module, whole=whole)
            self._python = self._python or body.module.locs.python

    def _pass_dump(self, tag: Tag) -> None:
        """TTXLA_LOGGER_LEVEL=VERBOSE prints the module after every pass; none is a stage."""
        self._verbose = True
        body = self._bodies.get(tag.text)
        if body is not None and body.stage:
            self._close_body(tag, body.thread)
        thread = self._threads.get(tag.text, b"")
        self._open_body(tag, _Body(None, "", ModuleBody(located=False), thread))

    def _graph_of(self, tag: Tag) -> TtGraph | None:
        return self._graphs.get((tag.text, self._threads.get(tag.text, b"")))

    # Ends

    def _finish_graph(self, key: tuple[bytes, bytes]) -> None:
        graph = self._graphs.pop(key, None)
        if graph is None:
            return
        stack = graph.stack or (graph.announced.stack if graph.announced else ())
        self._console.event(
            graph.process, graph.body(), stack=stack, time_ns=graph.start_ns or None
        )

    def finish(self) -> None:
        tally = self._console.tally
        for text in list(self._bodies):
            tag = Tag(text)
            body = self._drop_body(tag)
            if body is None:
                continue
            cut = bool(body.stage) and body.module.lines > 0
            self._finish_body(body, whole=not cut)
            if cut or (body.stage and self._ends):
                tally.cut_tail = True
                if body.graph is not None and not body.graph.cut:
                    body.graph.cut = "tail"
        for key in list(self._graphs):
            self._finish_graph(key)
        self._notes.finish()
        if self._headers:
            level = "VERBOSE" if self._verbose else "DEBUG"
            tally.flags.add(f"TTXLA_LOGGER_LEVEL={level}")
            tally.build = tally.build or ("debug" if self._other else "release")
            if not self._ends:
                tally.flags.add("TTXLA_LOGGER_FILE")
        elif self._other:
            tally.build = tally.build or "debug"
        if self._python:
            tally.flags.add("XLA_HLO_DEBUG=1")


def _stage(header: re.Match[bytes]) -> str:
    """Today's name: the plugin of 2025 wrote `VHLO Module:` and sentences for what comes after."""
    name = plain(header["name"])
    after = header.groupdict().get("after")
    if not after:
        return name.lower() if name.isupper() else name
    return f"{name.lower()}_frontend" if b"frontend" in after else f"{name.lower()}_compiler"


_FIRST = "vhlo"
"""Every era of the plugin begins a graph with it; how many stages follow has changed often."""
_FAILED_TO = re.compile(
    r"Failed to (?:convert from \w+ to|create|run|generate)\s+(?P<what>\w+)", re.I
)
_STAGES = {"stablehlo": "shlo_compiler", "flatbuffer": "flatbuffer"}
_MOST_STAGES = 400
"""Of one graph. Chosen: a bound for memory."""


@dataclass
class TtGraph:
    """What is known of one graph so far."""

    process: ConsoleProcess
    start_ns: int
    announced: Announced | None = None
    after: str | None = None
    backend: str | None = None
    stages: list[ModuleStage] = field(default_factory=list)
    name: str = ""
    places: tuple[OpPlace, ...] = ()
    resumes: tuple[CodeRef, ...] = ()
    stack: tuple[Frame, ...] = ()
    errors: list[str] = field(default_factory=list)
    failed_stage: str = ""
    cut: str = ""

    @property
    def located(self) -> bool:
        return bool(self.places)

    def ended(self, stage: str, body: ModuleBody, *, whole: bool) -> None:
        """The module of one stage has been read."""
        if len(self.stages) < _MOST_STAGES:
            self.stages.append(body.stage(stage, whole=whole))
        self.name = self.name or body.name
        places, resumes, stack = body.origins()
        if places and not self.places:
            self.places, self.stack = places, stack
        self.resumes = self.resumes or resumes

    def failed(self, text: str) -> None:
        if len(self.errors) < 5:
            self.errors.append(text[:1000])
        found = _FAILED_TO.search(text)
        if found is not None and not self.failed_stage:
            what = found["what"].lower()
            self.failed_stage = _STAGES.get(what, what)

    def body(self) -> GraphCompiled:
        told = self.announced.body if self.announced else GraphCompiled("tt-xla")
        return msgspec.structs.replace(
            told,
            system="tt-xla",
            name=self.name or told.name,
            stages=tuple(self.stages),
            places=self.places,
            resumes=self.resumes,
            after=self.after,
            backend=self.backend,
            error="\n".join(self.errors),
            failed_stage=self.failed_stage,
            cut=self.cut,
        )
