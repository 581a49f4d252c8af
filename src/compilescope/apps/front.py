"""The package's front for Python users: capture in this process, explain a callable, load a run.

Here the parts are joined; none of them knows the others.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time_ns
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.settings import read_settings
from compilescope.base.texts import plain_json
from compilescope.base.version import VERSION
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.profiles.trace import USUAL_STEPS
from compilescope.record import bodies
from compilescope.record.event import Event
from compilescope.record.graph import Graph, decode_graph
from compilescope.record.guards import decode_guards
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run, find_run, new_run_id
from compilescope.record.run import Run, read_run
from compilescope.record.stack import place_of
from compilescope.report.finding_table import FindingTable

COMPILED_BEFORE = "compiled-before"
"""The id under which a torch that cannot tell it is noted."""


class Capture:
    """What a capture saw. Readable while it goes on, and after."""

    def __init__(self, read: Callable[[], Run]) -> None:
        self._read = read
        self.result: Any = None
        """What the function returned, for `explain`."""

    @property
    def run(self) -> Run:
        """The record itself."""
        return self._read()

    @property
    def digest(self) -> Digest:
        return digest(self.run)

    @property
    def events(self) -> list[Event]:
        return self.run.events

    @property
    def breaks(self) -> list[Any]:
        """Distinct break sites, not raw reports; in a notebook a table."""
        return self._table(self.digest.sites, "graph breaks")

    @property
    def eager_frames(self) -> list[Any]:
        return self._table(self.digest.eager_frames, "functions that fell back to eager")

    @property
    def recompiles(self) -> list[Any]:
        """Functions compiled more than once, with every guard that failed."""
        return self._table(self.digest.recompiles, "recompiles")

    @property
    def failures(self) -> list[Any]:
        return self._table(self.digest.failures, "failures")

    def _table(self, findings: Sequence[Any], what: str) -> FindingTable:
        return FindingTable(findings, what, self.run.header.root)

    @property
    def graphs(self) -> list[CapturedGraph]:
        """The graphs that Dynamo handed to a backend."""
        run = self.run
        return [
            CapturedGraph(run, event, body)
            for event, body in run.of(bodies.GraphCaptured)
            if body.stage == "dynamo"
        ]

    @property
    def guards(self) -> list[bodies.Guard]:
        """The guards of all cache entries."""
        run = self.run
        texts = (run.artifacts.get(body.artifact) for _, body in run.of(bodies.GuardSet))
        return [guard for text in texts if text for guard in decode_guards(text)]

    def summary(self) -> str:
        """The report as plain text."""
        from compilescope.report.render.terminal import to_text

        return to_text(self._document())

    def explain(
        self,
        llm: bool | str | Callable[[Any], str | None] | None = None,
        *,
        llm_url: str | None = None,
        redact: bool = False,
    ) -> Explanation:
        """Every cause in full: why it happens and what to change; print it, or show it in a cell.

        With `llm`, a language model's words stand beside ours, marked as such. It is the model's
        name on an OpenAI-compatible server; True for what the environment names; or a function
        that gets the question as a text, with `.messages` for chat models, and returns the answer.
        `llm_url` is the server's base URL. With `redact`, your names and constants are replaced in
        what is asked. Without `llm` nothing is ever sent.
        """
        from compilescope.report.section import Reading

        reading = Reading(self.run, reader="python")
        if not llm:
            if llm_url or redact:
                raise ToolError("llm_url and redact need llm: a model's name, True or a function.")
            return Explanation(reading)
        return _asked(reading, llm, llm_url, redact)

    def to_json(self) -> str:
        """The digest as JSON, the same that the command line gives."""
        from compilescope.knowledge.analysis.json_form import digest_json

        return plain_json(digest_json(self.digest))

    def _repr_html_(self) -> str:
        from compilescope.report.render.html import to_html

        return to_html(self._document())

    def _document(self) -> Any:
        from compilescope.report.document import report_document
        from compilescope.report.section import Reading

        return report_document(Reading(self.run, reader="python"))

    def __repr__(self) -> str:
        seen = self.digest
        return (
            f"<Capture {seen.run}: {seen.graphs} graphs, {len(seen.sites)} graph breaks, "
            f"{len(seen.recompiles)} functions recompiled, {len(seen.failures)} failures>"
        )


class Explanation:
    """What `explain` of a capture gives: text for `print`, a card in a notebook, markdown."""

    def __init__(self, reading: Any, model: str = "", problem: str | None = None) -> None:
        self._reading = reading
        self.model = model
        """Who was asked; empty: nobody."""
        self.problem = problem
        """Why words of the model are missing, in a sentence; None where none are."""

    @property
    def words(self) -> dict[str, str]:
        """A language model's words, by the fingerprint of the cause."""
        return {name: quote.text for name, quote in self._reading.quotes.items()}

    def __str__(self) -> str:
        from compilescope.report.render.terminal import to_text

        return to_text(self._document())

    def to_markdown(self) -> str:
        from compilescope.report.render.markdown import to_markdown

        return to_markdown(self._document())

    def _repr_html_(self) -> str:
        from compilescope.report.render.html import to_html

        return to_html(self._document())

    def _document(self) -> Any:
        from compilescope.report.explanation import explanation
        from compilescope.report.quotes import with_problem

        numbers = range(1, len(self._reading.causes) + 1)
        return with_problem(explanation(self._reading, numbers), self.problem)

    def __repr__(self) -> str:
        causes = len(self._reading.causes)
        said = f", words of {self.model} on {len(self.words)}" if self.model else ""
        noun = "cause" if causes == 1 else "causes"
        return f"<Explanation of {self._reading.digest.run}: {causes} {noun}{said}>"


def _asked(
    reading: Any,
    llm: bool | str | Callable[[Any], str | None],
    url: str | None,
    redact: bool,
) -> Explanation:
    from compilescope.report.llm.question import questions_for
    from compilescope.report.llm.replies import function_speaker, replies, server_speaker
    from compilescope.report.llm.server import model_settings
    from compilescope.report.quotes import model_quote

    if callable(llm):
        speaker = function_speaker(llm)
    elif not isinstance(llm, bool | str):
        raise ToolError("llm is a model's name, True or a function.")
    else:
        name = llm if isinstance(llm, str) else None
        speaker = server_speaker(model_settings(model=name, url=url))
    questions = questions_for(reading.run, reading.digest, reading.causes, redacted=redact)
    quotes, problem = {}, None
    for finding, reply in zip(reading.causes, replies(speaker, questions), strict=False):
        problem = reply.problem
        if reply.words is not None:
            quotes[finding.fingerprint] = model_quote(reply.model, reply.words, redacted=redact)
    return Explanation(msgspec.structs.replace(reading, quotes=quotes), speaker.name, problem)


class CapturedGraph:
    """One graph: its facts, its code, and the portable form."""

    def __init__(self, run: Run, event: Event, body: bodies.GraphCaptured) -> None:
        self._run = run
        self._body = body
        self.compile_id = event.compile_id
        self.ops = body.ops
        self.backend = body.backend
        self.frame = body.frame
        self.reason = body.reason

    @property
    def code(self) -> str:
        """The graph as torch prints it."""
        return (self._body.text and self._run.artifacts.get(self._body.text)) or ""

    @property
    def graph(self) -> Graph | None:
        text = self._body.graph and self._run.artifacts.get(self._body.graph)
        return decode_graph(text) if text else None

    def __repr__(self) -> str:
        frame = self.frame
        where = f"{frame.function} ({place_of(frame.file, frame.line)})" if frame else "?"
        return f"<graph {self.compile_id} of {where}: {self.ops} ops>"


@contextmanager
def capture(
    *,
    dir: str | os.PathLike[str] | None = None,
    ir: bool = False,
    time: bool = False,
    profile: bool | int = False,
) -> Iterator[Capture]:
    """Record everything torch.compile does within the block, in this process.

    What was compiled before the block runs and is not compiled again, so that the record holds
    nothing of it; the summary then says so. `torch.compiler.reset()` before it, or `explain`,
    makes it compile anew.

    The record lives in memory. With `dir` it is a run on disk as well, written as it happens, that
    the command line can open. With `time` every call of compiled code is timed. With `profile`
    torch's profiler records 5 steps, or as many as it says, once nothing compiles anymore.
    """
    steps = USUAL_STEPS if profile is True else int(profile)
    with _capturing(dir, None, ir=ir, time=time, profile=steps) as live:
        yield live


@contextmanager
def _capturing(
    dir: str | os.PathLike[str] | None, dropped: Sequence[Any] | None, **how: Any
) -> Iterator[Capture]:
    """`dropped`: what compiles again because of us; None where nothing was dropped. `how`: as
    `recording` has it."""
    from compilescope.instrument.recorder.journal import DiskJournal, MemoryJournal
    from compilescope.instrument.recorder.session import recording

    header = _header()
    if dir is None:
        memory = MemoryJournal()
        live = Capture(lambda: Run(header, list(memory.events), memory.artifacts, live=True))
        try:
            with recording(memory, **how) as recorder:
                _tell_before(recorder, dropped)
                yield live
        finally:
            live._read = functools.cache(lambda: Run(header, memory.events, memory.artifacts))
        return
    folder = create_run(Path(dir), header)
    on_disk = Capture(lambda: read_run(folder, live=True))
    try:
        with recording(DiskJournal(folder), **how) as recorder:
            _tell_before(recorder, dropped)
            yield on_disk
    finally:
        on_disk._read = functools.cache(lambda: read_run(folder))
        # A full disk must not take the place of the user's own exception.
        with suppress(OSError):
            write_header(folder, msgspec.structs.replace(header, ended_ns=time_ns()))


def _tell_before(recorder: Any, dropped: Sequence[Any] | None) -> None:
    """What was compiled before runs unseen: the record says what there was."""
    from compilescope.instrument.torchapi.compilation.fresh import compiled_functions

    functions = compiled_functions() if dropped is None else dropped
    if functions is None:
        loses = "code compiled before the capture began"
        target = "torch._dynamo.convert_frame.input_codes"
        recorder.emit(bodies.HookUnavailable(COMPILED_BEFORE, target, loses))
    elif functions:
        recorder.emit(bodies.CompiledBefore(tuple(functions), dropped=dropped is not None))


def explain(function: Callable[..., Any], **options: Any) -> Callable[..., Capture]:
    """`explain(model)(*args)`: compile anew, call once, and say what was lost.

    In the manner of `torch._dynamo.explain`, but it counts sites and not reports, and keeps what
    the call returned in `.result`. `options` go to `torch.compile`; without a backend among them
    it is "eager", so that nothing but Dynamo's own work is seen or paid for. What is compiled
    already (`torch.compile(f)`, `model.compile()`) keeps its own backend and options, unless
    `options` are given.

    Every call of it compiles everything anew and says the same. For that, the compiled code of
    this process is dropped before and after: other compiled functions compile again when they are
    next called. Nothing else of Dynamo's changes: compile ids go on, and the sizes that it has
    seen change stay known. `.run` names what was dropped, and so does `.summary()`.
    """

    def call(*args: Any, **kwargs: Any) -> Capture:
        from compilescope.instrument.torchapi.compilation.fresh import as_compiled, compiled_anew

        compiled = as_compiled(function, options)
        with compiled_anew() as dropped, _capturing(None, dropped) as seen:
            seen.result = compiled(*args, **kwargs)
        return seen

    return call


def load(run: str | os.PathLike[str] | None = None, *, dir: str | None = None) -> Capture:
    """A run on disk: a path, an id or the start of one; the latest by default."""
    home = Path(dir) if dir else read_settings().home
    folder = find_run(home, os.fspath(run) if run is not None else None)
    return Capture(functools.cache(lambda: read_run(folder)))


def _header() -> RunHeader:
    return RunHeader(
        run=new_run_id("capture"),
        tool=VERSION,
        cwd=os.getcwd(),
        root=os.getcwd(),
        host=socket.gethostname(),
        started_ns=time_ns(),
    )
