"""Bodies of events about results rather than observations.

Violations of devices, compared numbers, repros, measured times, faster steps. `diff`, `minify`,
`check` and `tune` record their outcomes here, as `fix` does in `fix_search`; every view draws these
records.
"""

from typing import Literal

import msgspec

from compilescope.record.body import EventBody, GraphStage, Verdict
from compilescope.record.fix_search import Placement
from compilescope.record.stack import CodeRef


class Violation(EventBody, frozen=True):
    """Something in a graph that a device cannot run. The event's stack ends at the user's line."""

    rule: str
    """The constraint."""
    device: str
    op: str
    found: str
    allowed: str
    severity: Literal["error", "warning", "unknown"] = "error"
    """`unknown`: the constraint could not tell."""
    remedy: str = ""
    stage: GraphStage = "dynamo"
    model: str = ""
    node: str = ""
    """The graph's node."""


class DeviceChecked(EventBody, frozen=True):
    """Graphs that were held against a device: one by a backend that checks, with a `Violation` for
    each thing it refuses, or all of a run by `preflight`."""

    device: str
    outcome: Verdict
    graphs: int = 1
    errors: int = 0
    warnings: int = 0
    unknown: int = 0
    """What could not be told."""
    title: str = ""
    """What the device is, as its file says."""
    model: str = ""
    whole: bool = False
    """All graphs of the run: what was said before no longer counts."""


class WorstValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One element of a tensor. Values are text: they may be complex, or not finite."""

    index: tuple[int, ...]
    reference: str
    test: str
    error: str


class ErrorGrid(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in a tensor the errors lie: rows are all dimensions but the last, columns the last."""

    lines: tuple[str, ...]
    """A digit a cell: 0 no error, 1 to 8 from `low` to `high` in even steps of the logarithm,
    9 not finite on one side."""
    low: float
    high: float
    row_size: int
    """Rows of the tensor that the lines share."""
    column_size: int
    histogram: tuple[tuple[int, int], ...] = ()
    """(n, count): so many errors from 10**n up to 10**(n + 1)."""
    zeros: int = 0
    """Elements without an error."""


class ErrorProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The worst places along one dimension."""

    dimension: int
    size: int
    worst: tuple[tuple[int, int, float, int], ...]
    """First place, places, largest error, elements outside the tolerance; worst first."""
    entries: int = 0
    """With an error above half of the largest."""


class TensorDiff(EventBody, frozen=True):
    """One value of the reference held against the same value under test."""

    path: str
    """Where in the result it lies: `output['logits'][0]`, `grad of encoder.weight`."""
    verdict: Verdict
    reason: str = ""
    model: str = ""
    reference: str = "eager"
    test: str = ""
    """The backend under test."""
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    """Finite ones only."""
    guilty: str = ""
    """The operation at which they part, where it was looked for."""
    role: Literal["output", "change", "gradient", "step", "structure"] = "output"
    """`change`: what the call wrote into an argument or the model's state; `step`: after a step of
    the optimizer; `structure`: a container."""
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    worst: tuple[WorstValue, ...] = ()
    """Largest error first."""
    errors: ErrorGrid | None = None
    profiles: tuple[ErrorProfile, ...] = ()
    """One for each dimension."""
    input: str = ""
    """Of several sets of inputs the one that it comes from, and what Dynamo compiled for it."""


class WrongOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operation at which a backend parts from the reference."""

    words: str
    """What it is and how it is known, in one line."""
    file: str = ""
    line: int = 0
    function: str = ""
    source: str = ""


class ComparedInputs(msgspec.Struct, frozen=True, omit_defaults=True):
    """One set of inputs of a comparison."""

    label: str
    """`input 2 (other sizes)`."""
    verdict: Verdict
    compiled: str = ""
    """What Dynamo compiled for it, in words; `skipped` where it was not run."""


class DiffOutcome(EventBody, frozen=True):
    """What a comparison of two backends came to; each value of it is a `TensorDiff`."""

    model: str
    reference: str
    test: str
    """The backend under test."""
    verdict: Verdict
    """`unknown` although every value agrees, where the test never compiled anything."""
    reason: str = ""
    error: str = ""
    """What the test raised."""
    float64: bool = False
    """Both sides were compared with a float64 run."""
    compiles: int = 0
    """How often the test backend was called."""
    operations: tuple[WrongOperation, ...] = ()
    """Where they part, where that was looked for and found."""
    inputs: tuple[ComparedInputs, ...] = ()
    """In the order in which they were run."""
    notes: tuple[str, ...] = ()


class ReproWritten(EventBody, frozen=True):
    """What became of the repro of a failed compilation, a violation, or a graph break in a log."""

    because: str
    """Id of the event that it shows."""
    path: str = ""
    """The script: within the run's folder, or the whole path of one elsewhere; empty where there
    is none."""
    reason: str = ""
    """Why there is none, or why it could not be verified."""
    ops: int | None = None
    """Operations in the script's graph."""
    ops_before: int | None = None
    """Operations in the graph that failed."""


class MinifyOutcome(EventBody, frozen=True):
    """What became of a program that was minified. The event's stack ends at the cause's line."""

    predicate: Literal["break", "recompile", "crash", "diff", "violation"]
    cause: str
    """What the repro is to show, in one line."""
    path: str = ""
    """The repro: the whole path of the script; empty where there is none."""
    script: str = ""
    """Artifact: the repro's text. The numbers that a graph needs may lie beside `path`."""
    reason: str = ""
    """Why there is none, or why no fresh process has verified it."""
    unit: Literal["tokens", "operations"] = "tokens"
    """What its size is counted in."""
    size_before: int = 0
    size: int = 0
    lines_before: int | None = None
    lines: int | None = None
    """Lines of the program with something on them, where its source was minified."""
    runs: int = 0
    """Candidates that were run."""
    reused: int = 0
    """Candidates of which the answer was known from an earlier, stopped search."""
    seconds: float = 0.0
    stopped: Literal["", "interrupt", "time", "calls"] = ""
    """What ended it before nothing smaller could be found."""
    needs: dict[str, str] = msgspec.field(default_factory=dict)
    """Modules of the program that the repro still imports, and why."""


class JudgedLimit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One limit, held against a run."""

    name: str
    """`breaks`, `recompiles`, ..., `baseline`; else what is doubtful about the whole run."""
    outcome: Verdict
    message: str
    found: int | float | None = None
    limit: int | float | None = None
    subject: str = ""
    """Which benchmark it is about, where each is judged by itself: `bert on inductor`."""


class CheckOutcome(EventBody, frozen=True):
    """What a gate said of the program that it ran, with the limits that held then."""

    outcome: Verdict
    checks: tuple[JudgedLimit, ...] = ()
    own: bool = False
    """Only causes in the user's own files counted."""
    baseline: str = ""
    """The file of accepted causes; empty where there was none."""
    new: int = 0
    """Causes that are not in the baseline."""


class Measurement(EventBody, frozen=True):
    """A figure, and how it was obtained."""

    name: str
    """What was measured, with its unit: `step_ms`, `compile_s`."""
    value: float
    subject: str = ""
    """The model or program."""
    variant: str = ""
    """What distinguishes it from others of the same name and subject: a backend, a mode."""
    spread: float | None = None
    """Half the distance between the quartiles, or what `how` says."""
    samples: int | None = None
    how: str = ""


class GraphTime(EventBody, frozen=True):
    """Steady-state calls of one compiled graph since the last such event; they add up.

    Host time. A GPU works on after its kernels are launched, so there this is the time to launch
    them, unless launches block (CUDA_LAUNCH_BLOCKING=1); `device_` is by the GPU's own clock.
    """

    graph: str
    """The compile id."""
    calls: int
    inside_ns: int
    after_ns: int = 0
    """Outside all graphs, from the end of this one up to the next one or to the end of the region's
    call. Only where a break ended it; what follows other graphs is added to the last such one."""
    frame: CodeRef | None = None
    captured: str | None = None
    """Id of the event that has the graph."""
    device_inside_ns: int | None = None
    device_after_ns: int | None = None
    """None where the process used no GPU."""


class RegionTime(EventBody, frozen=True):
    """Calls into one compiled region since the last such event; they add up. Host time."""

    region: CodeRef
    calls: int
    """In steady state: nothing compiled while they ran."""
    total_ns: int
    inside_ns: int
    """In compiled graphs."""
    entry_ns: int = 0
    """Outside graphs with no break before it in that call: guard checks, and frames run eagerly."""
    warmup_calls: int = 0
    """Calls during which something was compiled, here or in another thread."""
    warmup_ns: int = 0
    device_total_ns: int | None = None
    """From event to event in the GPU's queue: kernels, and waiting for the host between them. None
    where the process used no GPU."""
    device_inside_ns: int | None = None
    device_entry_ns: int | None = None


class StepsProfiled(EventBody, frozen=True):
    """Some steps in steady state, as torch's profiler saw them. A step is the time from one call of
    the region to its next."""

    region: CodeRef | None = None
    steps: int = 0
    step_ns: tuple[int, ...] = ()
    """Of as many steps just before, without the profiler: it makes the host slower."""
    trace: str = ""
    """The artifact; see `profiles/trace.py`."""
    places: str = ""
    """Artifact: the user's lines of a step more; see `profiles/calls.py`."""
    unfused: str = ""
    """Artifact: kernels that Inductor did not fuse; see `profiles/calls.py`."""
    matmul_precision: str = ""
    """Of float32: torch's own word, `highest` where TF32 is off."""
    device: str = ""
    """Its name; empty for the CPU alone."""
    roof: str = ""
    """What the device can do at most, as JSON; see `profiles/kernel_rows.py`."""
    reason: str = ""
    """Why there is no profile, where there is none."""


TuneVerdict = Literal["verified", "apart", "rejected", "unverified", "refused"]
"""`apart`: faster, but offered by itself: it changes numbers on purpose, or is for compile time.
`refused`: it cannot apply, so it was not tried."""


class TuneAttempt(EventBody, frozen=True):
    """One candidate."""

    candidate: str
    """Its id."""
    title: str
    verdict: TuneVerdict
    reason: str = ""
    """Why it is not verified; else what speaks for it."""
    speedup: float | None = None
    """Of a step, over the original's."""
    speedup_ci: tuple[float, float] | None = None
    numbers: Verdict | Literal[""] = ""
    """Held to the original's; empty where they were not compared."""
    numbers_reason: str = ""
    memory_bytes: int | None = None
    """More than the original's at its peak."""
    compile_seconds: float | None = None
    """More than the original's."""
    compile_speedup: float | None = None
    """Of what is meant for compile time: over the original's, in starts with empty caches."""
    compile_speedup_ci: tuple[float, float] | None = None
    artifact_bytes: int | None = None
    """Of the file that a start loads."""
    needs_seconds: float | None = None
    """At least so long it compiles; only where its share of the time budget was shorter."""
    price: str = ""
    diff: str = ""
    """What it alone would change."""
    kept: bool = False
    """It is part of the result."""


class TuneOutcome(EventBody, frozen=True):
    """All that was kept, together, against the original."""

    step: str
    """The place of the step: `train.py:34`."""
    verdict: Literal["verified", "unverified"]
    reason: str = ""
    before_ms: float | None = None
    after_ms: float | None = None
    speedup: float | None = None
    speedup_ci: tuple[float, float] | None = None
    numbers: Verdict | Literal[""] = ""
    memory_bytes: int | None = None
    compile_seconds: float | None = None
    pays_after: int | None = None
    """Steps after which the time saved is more than what compiling takes longer."""
    device: str = ""
    """The GPU's name; empty for the CPU."""
    diff: str = ""
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    placements: tuple[Placement, ...] = ()
    """Ways to say what is compiled, side by side; none where there was no choice."""
