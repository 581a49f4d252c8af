"""What an event can say: a tagged union of frozen records with plain JSON values.

A source appends them, a rule reads them. A kind that this version does not know becomes
`Unknown` and is kept whole.
"""

from typing import Any, Literal

import msgspec

from compilescope.record.benchmark import Benchmark as Benchmark
from compilescope.record.benchmark import Machine as Machine
from compilescope.record.body import EventBody
from compilescope.record.body import GraphStage as GraphStage
from compilescope.record.cache_key import CacheAccess as CacheAccess
from compilescope.record.fix_search import ChangeOutcome as ChangeOutcome
from compilescope.record.fix_search import FixAttempt as FixAttempt
from compilescope.record.fix_search import FixOutcome as FixOutcome
from compilescope.record.jobs import JobCause as JobCause
from compilescope.record.jobs import JobEnded as JobEnded
from compilescope.record.logged import BreakEcho as BreakEcho
from compilescope.record.logged import FallbackOps as FallbackOps
from compilescope.record.logged import GraphCompiled as GraphCompiled
from compilescope.record.logged import GraphDumped as GraphDumped
from compilescope.record.logged import GraphExecuted as GraphExecuted
from compilescope.record.logged import LogLine as LogLine
from compilescope.record.logged import LogRead as LogRead
from compilescope.record.logged import SourceChecked as SourceChecked
from compilescope.record.logged import SymbolicShape as SymbolicShape
from compilescope.record.logged import TraceRecords as TraceRecords
from compilescope.record.outcomes import CheckOutcome as CheckOutcome
from compilescope.record.outcomes import DeviceChecked as DeviceChecked
from compilescope.record.outcomes import DiffOutcome as DiffOutcome
from compilescope.record.outcomes import GraphTime as GraphTime
from compilescope.record.outcomes import Measurement as Measurement
from compilescope.record.outcomes import MinifyOutcome as MinifyOutcome
from compilescope.record.outcomes import RegionTime as RegionTime
from compilescope.record.outcomes import ReproWritten as ReproWritten
from compilescope.record.outcomes import StepsProfiled as StepsProfiled
from compilescope.record.outcomes import TensorDiff as TensorDiff
from compilescope.record.outcomes import TuneAttempt as TuneAttempt
from compilescope.record.outcomes import TuneOutcome as TuneOutcome
from compilescope.record.outcomes import Violation as Violation
from compilescope.record.stack import CodeRef, Frame
from compilescope.record.values import ValueFact

BreakOutcome = Literal["resumed", "rest-eager", "frame-eager", "unknown"]


class GraphBreak(EventBody, frozen=True):
    """Dynamo could not go on. The event's stack ends at the offending line."""

    gb_type: str
    """The root cause, never the wrapper ("graph break in loop") around it."""
    gb_id: str | None = None
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""
    """PyTorch's own debug context."""
    wrappers: tuple[str, ...] = ()
    """gb_types raised while the root cause was handled, in order."""
    outcome: BreakOutcome = "unknown"
    """The frame resumed after the break, or ran eagerly from there on, or as a whole."""
    error: str = ""
    """The exception's class."""
    frame: CodeRef | None = None
    """The code object that was being compiled."""
    within: CodeRef | None = None
    """The function that the offending line is in, which may have been inlined into `frame`."""
    values: dict[str, ValueFact] = msgspec.field(default_factory=dict)
    """What its variables held when tracing ended there, as far as Dynamo knew."""


class GraphCaptured(EventBody, frozen=True):
    """A graph at one stage of compilation."""

    stage: GraphStage
    text: str | None = None
    """Artifact: the graph as readable code."""
    graph: str | None = None
    """Artifact: the portable Graph as JSON."""
    nodes: int | None = None
    ops: int | None = None
    """Nodes that compute: neither inputs nor the output."""
    backend: str | None = None
    frame: CodeRef | None = None
    region: CodeRef | None = None
    """The outermost compiled function under which this one was entered."""
    ended_by_break: bool | None = None
    reason: str = ""
    """Why the graph ended where it does."""
    origins: str | None = None
    """Artifact: which nodes of Dynamo's graph its nodes came from, as JSON (Origins)."""


class GuardSet(EventBody, frozen=True):
    """The guards of one cache entry."""

    count: int
    kinds: dict[str, int]
    artifact: str
    """Artifact: a JSON list of Guard."""
    frame: CodeRef | None = None


class Guard(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One guard of a cache entry."""

    source: str
    """What is guarded, as Dynamo writes it: L['x'] is a local, G['x'] a global."""
    kind: str
    checks: tuple[str, ...] = ()
    """The conditions, with dtype, sizes and strides of tensors."""
    stack: tuple[Frame, ...] = ()
    """The user's stack that made Dynamo install it, outermost first."""


class FailedGuard(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A guard that did not hold, and the value that broke it."""

    guard: str
    """The condition, e.g. `x.size()[0] == 2`."""
    subject: str
    """What it is about, e.g. `x.size()[0]`."""
    expected: str = ""
    actual: str = ""
    kind: str = ""
    frame: Frame | None = None
    """The user's line that made Dynamo install the guard."""


class CacheEntryMiss(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An earlier compilation of the frame that could not be used again."""

    compile_id: str
    failed: tuple[FailedGuard, ...] = ()
    reason: str = ""
    """PyTorch's own words: the first failed guard only."""
    folded: int = 0
    """Further entries whose first failed guard is on the same value: counted, and not looked at any
    further. Only frames that are compiled more than 16 times have such."""
    newest: str = ""
    """The compile id of the newest of those."""
    fails: int | None = None
    """How often its guards had failed by then, this time included, as PyTorch counts; None where it
    does not."""


class Recompile(EventBody, frozen=True):
    """A frame is compiled again, since no earlier compilation fits."""

    frame: CodeRef
    entries: tuple[CacheEntryMiss, ...] = ()
    """Most recently used first."""
    refused: Literal["", "limit", "error"] = ""
    """What stopped it: the recompile limit, or `error_on_recompile`."""
    unlisted: int = 0
    """Entries beyond those listed and folded: they failed too many different guards."""
    inferred: bool = False
    """Nobody reported it: a log shows that the frame was compiled again, and not why."""


SkipCause = Literal[
    "graph-break",
    "recompile-limit",
    "dispatch-mode",
    "disabled",
    "generator",
    "backend",
    "torch-module",
    "error",
    "harmless",
    "unexplained",
]


class FrameSkipped(EventBody, frozen=True):
    """A frame runs eagerly."""

    frame: CodeRef
    cause: SkipCause
    reason: str = ""
    gb_type: str | None = None
    gb_id: str | None = None
    because: str | None = None
    """Id of the event that led to it."""


class CompileFailed(EventBody, frozen=True):
    """Compilation raised to the user, or a suppressed error threw it away."""

    error: str
    """The exception's class."""
    message: str
    phase: Literal["forward", "backward"] = "forward"
    gb_type: str | None = None
    gb_id: str | None = None
    hints: tuple[str, ...] = ()
    backend: str | None = None
    frame: CodeRef | None = None
    cause: str = ""
    """The innermost error in one line, where the message wraps one in another."""
    link: str = ""
    """The page that torch's message leads to."""


class MemoryTaken(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The most memory that a process had taken up to a moment, in bytes. None: not known."""

    host: int | None = None
    """Resident, as the system counts it."""
    device: int | None = None
    """In tensors on CUDA devices; None where the process used none."""


class CompileTime(EventBody, frozen=True):
    """One compilation of one frame, from start to end."""

    duration_ns: int
    phases_us: dict[str, int] = msgspec.field(default_factory=dict)
    phase: Literal["forward", "backward"] = "forward"
    ok: bool = True
    frame: CodeRef | None = None
    guards: int | None = None
    restarts: tuple[str, ...] = ()
    """Why Dynamo traced the frame again from its start."""
    region: int | None = None
    """The compiled region that was being called; None where nobody counted."""
    call: int | None = None
    """The number of that call, from 1."""
    memory: MemoryTaken | None = None


class RegionCalls(EventBody, frozen=True):
    """How often one compiled region was called, up to now."""

    region: int
    """Its number in its process."""
    calls: int
    memory: MemoryTaken | None = None


class VersionFails(msgspec.Struct, frozen=True, gc=False):
    """A compiled version of a function, and how often its guards failed in all."""

    compile_id: str
    fails: int


class VersionsSeen(EventBody, frozen=True):
    """The versions of a function that was compiled again, when they were last looked at."""

    frame: CodeRef
    versions: tuple[VersionFails, ...]
    """Most recently used first."""
    misses: int
    """How often none of them had fitted by then: so many recompiles had begun."""


class Phase(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A stretch of a compilation that torch itself times, under torch's own name."""

    name: str
    start_ns: int
    """By the clock of the events' times."""
    duration_ns: int
    depth: int = 0
    """How many phases of its thread it lies in."""
    compile_id: str | None = None
    """Where it is not the event's: a compilation within another."""
    detail: str = ""
    """What torch notes of it: the cache's answer, the kernel it works on."""
    ended: bool = True
    """False where no end was seen: the duration is the least that is known."""


class CompilePhases(EventBody, frozen=True):
    """The phases of one compilation and of those within it, in order of their start."""

    phases: tuple[Phase, ...]
    thread: int | None = None
    """The thread they ran in, where another one wrote the event."""


class KernelEmitted(EventBody, frozen=True):
    """Inductor's output code for one graph."""

    artifact: str
    file: str = ""
    kernels: tuple[str, ...] = ()
    origins: str | None = None
    """Artifact: what each call of a kernel computes, as JSON (KernelOrigins)."""
    direction: Literal["", "forward", "backward", "inference"] = ""
    """Of which pass, where a log told it; else the code itself does."""


class CudagraphSkip(EventBody, frozen=True):
    """CUDA graphs were asked for and not used."""

    reason: str


class SourceSeen(EventBody, frozen=True):
    """The text of a file that a stack names, as it was when it ran."""

    file: str
    artifact: str


class CompiledFunction(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function that Dynamo looked at before a capture began."""

    file: str
    line: int
    function: str
    compilations: int = 0
    """How many are kept; with none it was given up, or its code was dropped since."""


class CompiledBefore(EventBody, frozen=True):
    """What was compiled in this process before a capture began: it may run and not be seen."""

    functions: tuple[CompiledFunction, ...]
    dropped: bool = False
    """It was dropped, so that everything compiles anew."""


class StanceChanged(EventBody, frozen=True):
    """`torch.compiler.set_stance`: under `force_eager` nothing compiles and no hook sees it."""

    stance: str


class HookUnavailable(EventBody, frozen=True):
    """This torch lacks a choke point: what it would have shown is unknown, not zero."""

    hook: str
    target: str
    loses: str


class ToolFault(EventBody, frozen=True):
    """We failed inside the user's program and went on. A bug of ours."""

    where: str
    error: str
    traceback: str = ""


class ProcessStarted(EventBody, frozen=True):
    """First event of a process."""

    argv: tuple[str, ...]
    python: str
    torch: str
    parent_pid: int
    forked: bool = False
    """Forked children may leave by os._exit, which no end mark can follow."""
    device: str = "cpu"
    compile_arguments: tuple[str, ...] = ()
    """What `torch.compile` takes there; empty where it was not noted."""


class ProcessEnded(EventBody, frozen=True):
    """Last event of a process that ended in order, or by an exception.

    The event's stack is the exception's.
    """

    lost: int = 0
    """Events that could not be written."""
    error: str = ""
    """The class of the exception that nobody caught; empty where there was none."""
    message: str = ""
    accelerator: str = ""
    """The name of the GPU that the process used; empty where it used none, or it is not known."""
    memory: MemoryTaken | None = None


class Unknown(msgspec.Struct, frozen=True):
    """A kind this version does not know."""

    raw: dict[str, Any]


Body = (
    GraphBreak
    | GraphCaptured
    | GuardSet
    | Recompile
    | FrameSkipped
    | CompileFailed
    | CompileTime
    | CompilePhases
    | GraphTime
    | RegionTime
    | RegionCalls
    | VersionsSeen
    | StepsProfiled
    | CacheAccess
    | KernelEmitted
    | CudagraphSkip
    | Violation
    | TensorDiff
    | ReproWritten
    | FixAttempt
    | FixOutcome
    | ChangeOutcome
    | TuneAttempt
    | TuneOutcome
    | DiffOutcome
    | MinifyOutcome
    | CheckOutcome
    | DeviceChecked
    | Measurement
    | Benchmark
    | Machine
    | JobEnded
    | SourceSeen
    | CompiledBefore
    | StanceChanged
    | HookUnavailable
    | ToolFault
    | ProcessStarted
    | ProcessEnded
    | LogRead
    | GraphCompiled
    | GraphDumped
    | GraphExecuted
    | BreakEcho
    | FallbackOps
    | LogLine
    | SourceChecked
    | SymbolicShape
    | TraceRecords
)
