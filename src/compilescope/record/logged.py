"""Bodies of what only logs tell: what a log is, the graphs that XLA compilers were handed, and what
a structured trace (TORCH_TRACE) has beside what a live capture sees."""

from typing import Literal

import msgspec

from compilescope.record.body import EventBody
from compilescope.record.stack import CodeRef, Frame

LogSystem = Literal["torch", "torch_xla", "tt-xla", "program"]
"""Who wrote a line."""

GraphForm = Literal["mlir", "hlo", "ir", "dot", "unknown"]
ShapeAction = Literal["created", "unbacked", "guarded", "specialized", "assumed"]
"""A symbol was made for a size; one that no input gives; a condition on sizes was guarded; a symbol
became a constant; a real value was taken for one that only exists at run time."""


class LogRead(EventBody, frozen=True):
    """One log that was read: what it is, and what of it could not be understood."""

    source: str
    """Its path, or `-`."""
    bytes: int = 0
    lines: int = 0
    records: int = 0
    """Records that were understood."""
    unread: int = 0
    """Records and lines that should have been understood and were not."""
    samples: tuple[str, ...] = ()
    """The beginnings of the first few of them."""
    formats: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Settings that must have been on, as a user would write them."""
    build: str = ""
    """What is known of the build that wrote it: `debug`, `release`, a version."""
    cut_head: bool = False
    cut_tail: bool = False
    interleaved: str = ""
    """`tagged`: tags tell its processes apart; `ambiguous`: nothing does."""
    cut_lines: int = 0
    """Lines so long that only their beginning was read."""
    problems: tuple[str, ...] = ()
    command: str = ""
    """The command that the log itself shows to have started the program."""


class ModuleStage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A graph's module at one stage of its compilation, as the log shows it."""

    name: str
    """The compiler's own name for it: `vhlo`, `ttir`; empty where its header is cut off."""
    ops: int | None = None
    """Operations in it; None where the log has no body."""
    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    """The most frequent ones, by name."""
    whole: bool = True
    """False where its body is cut off or mixed with another's."""


class OpPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in the program, and how many operations of a graph came from it."""

    frame: Frame
    ops: int
    resumed_at: int | None = None
    """The line at which its function goes on after a graph break."""
    modules: str = ""
    """The path of modules to it, where the log tells."""


class GraphCompiled(EventBody, frozen=True):
    """A graph that an XLA compiler was handed. The event's stack is the program's, where known."""

    system: Literal["torch_xla", "tt-xla"]
    name: str = ""
    """The module's: `SyncTensorsGraph.37`."""
    stages: tuple[ModuleStage, ...] = ()
    """In order; empty where the log dumps no modules."""
    places: tuple[OpPlace, ...] = ()
    """Where its operations came from, most first."""
    resumes: tuple[CodeRef, ...] = ()
    """The rests of functions (after a graph break) that its operations came from."""
    hash: str = ""
    cause: str = ""
    """Why it was compiled, in torch_xla's words."""
    inputs: int | None = None
    outputs: int | None = None
    after: str | None = None
    """The last compile id that Dynamo had handed to a backend before."""
    backend: str | None = None
    """The backend of that compilation."""
    error: str = ""
    """The compiler's words, where it failed."""
    failed_stage: str = ""
    """The stage that it could not reach, where the log tells."""
    cut: Literal["", "head", "tail"] = ""
    """The log lacks its first or its last stages."""


class GraphDumped(EventBody, frozen=True):
    """A graph that was printed or saved, which does not say that it was compiled."""

    form: GraphForm = "unknown"
    name: str = ""
    hashes: tuple[str, ...] = ()
    ops: int | None = None
    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    places: tuple[OpPlace, ...] = ()
    resumes: tuple[CodeRef, ...] = ()
    count: int = 1
    """How often the same one was dumped."""


class GraphExecuted(EventBody, frozen=True):
    """Executions of one compiled graph for one cause, from one place; they add up."""

    hash: str
    cause: str = ""
    count: int = 1


class BreakEcho(EventBody, frozen=True):
    """A graph break reported in code of the compiler's own, which operators run through.

    It follows from a break of the program's: the operator at which that one stopped runs eagerly,
    and Dynamo meets the override's own frame.
    """

    gb_type: str
    gb_id: str | None = None
    explanation: str = ""
    context: str = ""
    override: Frame | None = None
    """Where torch reports it."""
    because: str | None = None
    """Id of the break it follows from, where the log tells."""


class FallbackOps(EventBody, frozen=True):
    """Operators that the device's compiler has no lowering for: they run on the CPU."""

    ops: tuple[str, ...]
    """None of them where the log shows only who called one: the event's stack."""
    told_by: Literal["dynamo", "profiler", "counter"]
    count: int = 1
    """How often the log says so; of a counter, its value."""
    log: str = ""
    log_line: int = 0
    """The first line that says so, from 1; 0 where it is not known."""


class SourceChecked(EventBody, frozen=True):
    """A file of the program that was at hand when the log was read."""

    file: str
    """As the log calls it."""
    here: str
    """The path that it was read from."""
    agrees: int = 0
    """Lines that the log shows and that agree; 0: the log shows nothing to compare."""
    problem: str = ""
    """How it differs from what the log shows; then its text was not taken."""


class LogLine(EventBody, frozen=True):
    """A warning or an error in the log that no other event tells; equal ones are counted."""

    system: LogSystem
    level: Literal["info", "warning", "error"]
    text: str
    count: int = 1


class SymbolicShape(EventBody, frozen=True):
    """What Dynamo did about a size that may change. The event's stack is the user's."""

    action: ShapeAction
    symbol: str = ""
    expression: str = ""
    value: str = ""
    sources: tuple[str, ...] = ()
    """What has that size, as Dynamo writes it."""
    reason: str = ""


class TraceRecords(EventBody, frozen=True):
    """Records of a trace that are kept as they are, with their texts; the event names them all."""

    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    """How many of each."""
    artifact: str | None = None
    """Artifact: a JSON line for each record, which names the artifact of its text."""
