"""Runs of every shape, made without torch: what every section and every format must draw."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import msgspec

from benchmark_runs import benchmark_run, row
from builders import ROOT, event, frame, run_of
from compilescope.record.artifacts import DiskArtifacts, MemoryArtifacts
from compilescope.record.bodies import (
    Benchmark,
    Body,
    BreakEcho,
    CacheAccess,
    CacheEntryMiss,
    ChangeOutcome,
    CheckOutcome,
    CompileFailed,
    CompileTime,
    CudagraphSkip,
    DiffOutcome,
    FailedGuard,
    FixAttempt,
    FixOutcome,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    GraphCompiled,
    Guard,
    GuardSet,
    HookUnavailable,
    KernelEmitted,
    LogRead,
    Machine,
    Measurement,
    MinifyOutcome,
    ProcessEnded,
    ProcessStarted,
    Recompile,
    RegionCalls,
    ReproWritten,
    SourceSeen,
    StepsProfiled,
    TensorDiff,
    ToolFault,
    TuneAttempt,
    TuneOutcome,
    Unknown,
    VersionFails,
    VersionsSeen,
    Violation,
)
from compilescope.record.event import Event, encode
from compilescope.record.fix_search import (
    ChangedCause,
    CountedTwice,
    FixCheck,
    FixedFile,
    FixLeft,
    Losses,
    Placement,
    Spread,
    Timed,
    Times,
)
from compilescope.record.graph import Graph, Node, TensorInfo, encode_graph
from compilescope.record.header import RunHeader, write_header
from compilescope.record.logged import ModuleStage, OpPlace
from compilescope.record.outcomes import ComparedInputs, JudgedLimit, WrongOperation
from compilescope.record.provenance import seal_run
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame
from profiles.traces import RECORDED
from sweep_samples import hostile_sweep, sweep_run

CODE = CodeRef(f"{ROOT}/model.py", 6, "forward")
HOSTILE = (
    "<script>window.hurt=1</script><img src=x onerror=window.hurt=1>'\"`*_[|]"
    "\x00\x1b[31m\u202etxt\u202c</pre></details>&lt;" + "y" * 300
)
SIZED = """import torch


def forward(x):
    return torch.relu(x) * 2


step = torch.compile(forward)
for size in range(2, 42):
    step(torch.ones(size, 4))
"""
SOURCE = "\n".join(
    ["import torch", "", "", "class Model(torch.nn.Module):", ""]
    + ["    def forward(self, x):", "        h = self.layer(x)", "        if h.mean() > 0:"]
    + ["            h = h * 2", "        return h", ""]
)


def full_run() -> Run:
    """One of everything that capture records."""
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3", frame=frame())
    bodies: list[Body] = [
        GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE),
        GraphBreak(
            gb_type="Data-dependent branching", gb_id="GB0170", hints=("Use cond.",), frame=CODE
        ),
        FrameSkipped(CODE, "graph-break", "Data-dependent branching", because="0.2"),
        FrameSkipped(CODE, "unexplained", "?"),
        Recompile(CODE, (CacheEntryMiss("0/0", (guard,)),), refused="limit"),
        CompileFailed("BackendCompilerFailed", "no such op", backend="toy", frame=CODE),
        CacheAccess("fx_graph", "miss"),
        CudagraphSkip("mutated inputs"),
        HookUnavailable("h", "torch.x", "something"),
        ToolFault("hook", "KeyError: 1"),
        CompileTime(40_000_000, {"inductor_cumulative_compile_time_us": 9000}, frame=CODE),
    ]
    return run_of(
        *(
            event(body, number=n, stack=(frame(),), compile_id="0/0")
            for n, body in enumerate(bodies)
        )
    )


def profiled_steps(artifacts: MemoryArtifacts) -> str:
    """The steps of a real program."""
    stored = gzip.decompress((RECORDED / "cudagraphs.profile.gz").read_bytes())
    return artifacts.put(stored.decode(), "profile")


def later_run() -> Run:
    """The kinds that other sources append: devices, numbers, benchmarks, one from the future."""
    artifacts = MemoryArtifacts()
    bodies: list[Body | Unknown] = [
        Violation(
            "alignment", "npu-a", "aten.mm.default", "7", "multiples of 16", remedy="Pad it."
        ),
        Violation("dtype", "npu-a", "aten.sin.default", "float64", "float32", severity="unknown"),
        TensorDiff(
            "output[0]", "fail", "too far", "toy", test="inductor", metrics={"max_abs": 0.5}
        ),
        TensorDiff("output[1]", "pass", metrics={"max_abs": 0.0}),
        DiffOutcome(
            "toy",
            "eager",
            "inductor",
            "fail",
            "1 of 2 values differ",
            operations=(WrongOperation("torch.sin (sin)", f"{ROOT}/toy.py", 8, "forward", "y"),),
            inputs=(ComparedInputs("input 1", "fail"), ComparedInputs("input 2", "pass", "again")),
            notes=("the model is in training mode",),
        ),
        StepsProfiled(CODE, 2, (3_500_000, 3_600_000), profiled_steps(artifacts), "NVIDIA H200"),
        StepsProfiled(reason="the program ended after 3 calls"),
        MinifyOutcome(
            "break",
            "Data-dependent branching",
            f"{ROOT}/repro.py",
            artifacts.put("import torch\n", "py"),
            size_before=90,
            size=12,
            lines_before=30,
            lines=4,
            runs=100,
            seconds=9.5,
            stopped="time",
            needs={"data": "it is no Python file"},
        ),
        CheckOutcome(
            "fail",
            (JudgedLimit("breaks", "fail", "1 graph break, at most 0 allowed", 1, 0),),
            own=True,
            baseline="ci/baseline.json",
        ),
        FixAttempt(
            "where-for-if", "torch.where instead of if", "verified", kept=True, diff="-a\n+b"
        ),
        FixAttempt("", "", "unverified", cause="Tensor.item()", reason="no fix is known for it"),
        FixOutcome(
            "verified",
            changes=artifacts.put(_json([FixedFile(f"{ROOT}/toy.py", "a\n", "b\n")]), "json"),
            environment={"TORCH_FLAG": "1"},
            before=Losses(breaks=1),
            after=Losses(),
            warm_call=(0.002, 0.001),
            notes=("The time budget of 1 s ran out: 1 cause was not fully tried.",),
            left=(FixLeft(f"{ROOT}/toy.py:9", "Unsupported"),),
            placements=(
                Placement(name="", title="as it is", verdict="original", losses=Losses(breaks=1)),
                Placement(
                    name="compile-modules",
                    title="the modules it calls",
                    verdict="verified",
                    losses=Losses(recompiles=1),
                    share=0.5,
                    warm_s=0.002,
                    compile_s=3.0,
                    memory_bytes=300_000_000,
                    chosen=True,
                ),
            ),
        ),
        TuneAttempt(
            "reduce-overhead", "CUDA graphs", "verified", "", 1.8, (1.7, 1.9), "pass", kept=True
        ),
        TuneAttempt("dynamic-shapes", "dynamic=True", "refused", "every step has the same sizes"),
        TuneOutcome(
            "toy.py:9",
            "verified",
            before_ms=18.0,
            after_ms=10.0,
            speedup=1.8,
            speedup_ci=(1.7, 1.9),
            numbers="pass",
            memory_bytes=2_100_000_000,
            compile_seconds=40.0,
            pays_after=5000,
            diff="-a\n+b",
            environment={"TORCH_FLAG": "1"},
            notes=("The time budget of 1 s ran out.",),
        ),
        ChangeOutcome(
            verdict="worse",
            reason="a new graph break at toy.py:3: Data-dependent branching",
            name="change.diff",
            checks=(FixCheck("output", "pass", "the same"), FixCheck("causes", "fail", "a break")),
            compared=("`step`: 2 recorded calls, eager and compiled",),
            not_compared=("Changed lines that did not run: toy.py:8.",),
            inputs=("the recorded inputs", "all values 0"),
            counts=(CountedTwice("breaks", (0, 0), (1, 2)),),
            share=(0.0, 0.5),
            times=Times(
                Timed(steady=Spread(0.001, 0.0009, 0.0011, 3)),
                Timed(steady=Spread(0.002, 0.0019, 0.0021, 3)),
            ),
            new=(ChangedCause(kind="break", rule="GB0170", title="a branch", line=3),),
            gone=(ChangedCause(kind="recompile", title="sizes", why="it was hidden"),),
            slower=True,
            diff="-a\n+b",
        ),
        Measurement("step_ms", 1.5, "toy", "inductor", spread=0.1, samples=20, how="medians"),
        Unknown({"kind": "FromTomorrow", "x": 1}),
    ]
    events = (event(body, number=n, stack=(frame(),)) for n, body in enumerate(bodies))
    return with_artifacts(run_of(*events), artifacts)


def hostile_run() -> Run:
    """Names that would steer a browser, a terminal or a document if anything let them."""
    bad = frame(
        source=HOSTILE, column=0, end_column=8, function=HOSTILE, file=f"{ROOT}/{HOSTILE}.py"
    )
    code = CodeRef(bad.file, 3, HOSTILE)
    guard = FailedGuard(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, frame=bad)
    artifacts = MemoryArtifacts()
    text = artifacts.put(f"# File: {bad.file}:8 in {HOSTILE}, code: {HOSTILE}\n{HOSTILE}", "py")
    guards = [Guard(HOSTILE, HOSTILE, (HOSTILE,), (bad,))]
    bodies: list[Body] = [
        GraphBreak(gb_type=HOSTILE, explanation=HOSTILE, hints=(HOSTILE,), frame=code),
        GraphCaptured("dynamo", text=text, ops=1, backend=HOSTILE, frame=code, reason=HOSTILE),
        GuardSet(1, {HOSTILE: 1}, artifacts.put(_json(guards), "json"), code),
        Recompile(code, (CacheEntryMiss(HOSTILE, (guard,), HOSTILE),)),
        FrameSkipped(code, "dispatch-mode", HOSTILE),
        CompileFailed(HOSTILE, HOSTILE, backend=HOSTILE, frame=code),
        CompileTime(5, {HOSTILE: 3}, frame=code, restarts=(HOSTILE,)),
        KernelEmitted(text, HOSTILE, (HOSTILE,)),
        CudagraphSkip(HOSTILE),
        Violation(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, remedy=HOSTILE, model=HOSTILE),
        TensorDiff(HOSTILE, "fail", HOSTILE, HOSTILE, metrics={HOSTILE: 1.0}),
        DiffOutcome(
            HOSTILE,
            HOSTILE,
            HOSTILE,
            "unknown",
            HOSTILE,
            HOSTILE,
            operations=(WrongOperation(HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE),),
            inputs=(ComparedInputs(HOSTILE, "fail", HOSTILE), ComparedInputs(HOSTILE, "pass")),
            notes=(HOSTILE,),
        ),
        MinifyOutcome(
            "crash",
            HOSTILE,
            HOSTILE,
            artifacts.put(HOSTILE, "py"),
            HOSTILE,
            needs={HOSTILE: HOSTILE},
        ),
        CheckOutcome(
            "unknown",
            (JudgedLimit(HOSTILE, "unknown", HOSTILE, 1, 0, HOSTILE),),
            baseline=HOSTILE,
        ),
        FixAttempt(
            HOSTILE, HOSTILE, "rejected", "0.1", HOSTILE, HOSTILE, HOSTILE, diff=f"-{HOSTILE}"
        ),
        FixOutcome(
            "verified",
            HOSTILE,
            artifacts.put(_json([FixedFile(HOSTILE, HOSTILE, "b")]), "json"),
            {HOSTILE: HOSTILE},
            Losses(breaks=1),
            notes=(HOSTILE,),
            left=(FixLeft(HOSTILE, HOSTILE),),
            placements=(
                Placement(name=HOSTILE, title=HOSTILE, verdict="rejected", reason=HOSTILE),
                Placement(name=HOSTILE, title=HOSTILE, verdict="apart", diff=HOSTILE),
            ),
        ),
        TuneAttempt(
            HOSTILE, HOSTILE, "rejected", HOSTILE, 0.9, numbers_reason=HOSTILE, price=HOSTILE
        ),
        TuneOutcome(
            HOSTILE,
            "unverified",
            HOSTILE,
            device=HOSTILE,
            diff=f"-{HOSTILE}",
            environment={HOSTILE: HOSTILE},
            notes=(HOSTILE,),
        ),
        ChangeOutcome(
            verdict="changed",
            reason=HOSTILE,
            name=HOSTILE,
            before_name=HOSTILE,
            after_name=HOSTILE,
            original=HOSTILE,
            checks=(FixCheck(HOSTILE, "fail", HOSTILE),),
            compared=(HOSTILE,),
            not_compared=(HOSTILE,),
            inputs=(HOSTILE,),
            counts=(CountedTwice("breaks", (1, 1), (2, 2)),),
            new=(
                ChangedCause(
                    kind="break", rule=HOSTILE, title=HOSTILE, file=HOSTILE, source=HOSTILE
                ),
            ),
            diff=f"-{HOSTILE}",
        ),
        Measurement(HOSTILE, 1.0, HOSTILE, HOSTILE, how=HOSTILE),
        SourceSeen(bad.file, artifacts.put(HOSTILE, "py")),
        HookUnavailable(HOSTILE, HOSTILE, HOSTILE),
        ToolFault(HOSTILE, HOSTILE, HOSTILE),
    ]
    events = [
        event(body, number=n, stack=(bad,), compile_id=HOSTILE) for n, body in enumerate(bodies)
    ]
    other = CompileTime(9, frame=CodeRef(bad.file, 30, HOSTILE))
    events.append(event(other, number=len(bodies), stack=(bad,), compile_id="7/0"))
    return with_artifacts(run_of(*events, command=(HOSTILE,), cwd=HOSTILE, host=HOSTILE), artifacts)


def ranks_run() -> Run:
    """Two ranks that part ways: the second breaks where the first does not."""
    same = GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE)
    broken = GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170", frame=CODE)
    events = []
    for rank in (0, 1):
        started = ProcessStarted(argv=("m.py",), python="3.11", torch="2.13.0", parent_pid=1)
        bodies = [started, same, *([broken] if rank else []), ProcessEnded()]
        events += [
            Event(
                id=f"{rank}.{n}",
                time_ns=10 * n + rank,
                pid=100 + rank,
                rank=rank,
                stack=(frame(),),
                body=body,
            )
            for n, body in enumerate(bodies)
        ]
    header = RunHeader(run="abc123-ranks", tool="0.1.0", root=ROOT, exit_status=0)
    return Run(header, events, MemoryArtifacts())


def sized_run() -> Run:
    """A size that was fixed at first, in a program that went on well."""
    artifacts = MemoryArtifacts()
    code = CodeRef(f"{ROOT}/model.py", 4, "forward")
    place = frame(5, source="    return torch.relu(x) * 2", column=11, end_column=24)
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3", frame=place)
    bodies: list[tuple[Body, str]] = [
        (SourceSeen(f"{ROOT}/model.py", artifacts.put(SIZED, "py")), ""),
        (GraphCaptured(stage="dynamo", ops=2, frame=code, region=code), "0/0"),
        (CompileTime(9_000, frame=code, region=0, call=1), "0/0"),
        (Recompile(code, (CacheEntryMiss("0/0", (guard,), fails=1),)), "0/1"),
        (CompileTime(9_000, frame=code, region=0, call=2), "0/1"),
        (RegionCalls(region=0, calls=40), ""),
        (VersionsSeen(code, (VersionFails("0/1", 0), VersionFails("0/0", 1)), misses=1), ""),
    ]
    events = (
        event(body, number=n, stack=(place,), compile_id=compile_id or None)
        for n, (body, compile_id) in enumerate(bodies)
    )
    return with_artifacts(run_of(*events, command=("model.py",), cwd=ROOT), artifacts)


def big_run(causes: int = 200, graphs: int = 500, events: int = 10_000) -> Run:
    """As much as a long training job leaves behind."""
    artifacts = MemoryArtifacts()
    made: list[Event] = []
    numbers = itertools.count()

    def add(body: Body, at: Frame, compile_id: str) -> None:
        made.append(event(body, number=next(numbers), stack=(at,), compile_id=compile_id))

    made.append(event(SourceSeen(f"{ROOT}/model.py", artifacts.put(SOURCE, "py")), number=0))
    for number in range(graphs):
        code = CodeRef(f"{ROOT}/layer{number % 40}.py", 10 + number, f"forward{number}")
        compile_id = f"{number}/0"
        lines = [
            f"        # File: {code.file}:{code.line} in {code.function}, code: x = x * {n}\n"
            f'        mul_{n}: "f32[64, 64]" = l_x_ * {n};  l_x_ = None'
            for n in range(40)
        ]
        text = f"class GraphModule{number}(torch.nn.Module):\n" + "\n".join(lines)
        graph = Graph(tuple(_mul(n, code) for n in range(40)))
        kept = artifacts.put(encode_graph(graph), "json")
        for stage in ("dynamo", "aot_forward", "post_grad"):
            shown = artifacts.put(f"# {stage}\n{text}", "py")
            body = GraphCaptured(stage, shown, kept, 40, 40, "inductor", code, code)
            add(body, frame(code.line, file=code.file), compile_id)
        kernels = artifacts.put(f"# kernels of {number}\n{text}", "py")
        add(KernelEmitted(kernels, kernels=(f"k{number}",)), frame(), compile_id)
        add(CompileTime(3_000_000, {"phase_us": 10}, frame=code), frame(), compile_id)
    while len(made) < events:
        number = len(made) % causes
        at = frame(8 + number, source=f"        if h.mean() > {number}:", function=f"f{number}")
        code = CodeRef(at.file, at.line, at.function)
        body = GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170", frame=code)
        add(body, at, f"{number}/1")
    return with_artifacts(run_of(*made), artifacts)


def _mul(number: int, code: CodeRef) -> Node:
    tensor = TensorInfo((64, 64), "float32", (64, 1), "cpu", 16384)
    at = Frame(code.file, code.line, code.function)
    return Node(f"mul_{number}", "call_function", "aten.mul.Tensor", ("x",), (tensor,), at)


def store(run: Run, home: Path, name: str) -> Path:
    """A run on disk, as capture would have left it."""
    folder = home / name
    folder.mkdir(parents=True)
    header = msgspec.structs.replace(run.header, run=name)
    write_header(folder, header)
    seal_run(folder, header)
    (folder / "events-0.jsonl").write_bytes(b"".join(encode(e) + b"\n" for e in run.events))
    artifacts = DiskArtifacts(folder / "artifacts")
    assert isinstance(run.artifacts, MemoryArtifacts)
    for kept, text in run.artifacts.items():
        assert artifacts.put(text, kept.rpartition(".")[2]) == kept
    return folder


def with_artifacts(run: Run, artifacts: MemoryArtifacts) -> Run:
    return Run(run.header, run.events, artifacts)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _named(name: str, run: Run) -> Run:
    run.header = msgspec.structs.replace(run.header, run=f"abc123-{name}")
    return run


def logged_run() -> Run:
    """As read from a log: cut, with a break, an echo, graphs of every kind of trouble."""
    forward = CodeRef(f"{ROOT}/model.py", 6, "forward")
    resumed = CodeRef(f"{ROOT}/model.py", 6, "forward", resumed_at=8)
    stages = (ModuleStage("vhlo", 4, {"vhlo.add_v1": 3}), ModuleStage("ttir", None, whole=False))
    graphs = [
        GraphCompiled("tt-xla", name="SyncTensorsGraph.4", stages=stages, after="0/0"),
        GraphCompiled("tt-xla", resumes=(resumed,), after="1/0", places=(OpPlace(frame(8), 2),)),
        GraphCompiled("tt-xla", error="failed to legalize <op>", failed_stage="ttnn", cut="tail"),
    ]
    captured = [
        event(GraphCaptured("dynamo", frame=code, region=forward), number=n, compile_id=f"{n}/0")
        for n, code in enumerate((forward, resumed))
    ]
    return run_of(
        event(GraphBreak("Data-dependent branching", gb_id="GB0170"), number=2, stack=(frame(),)),
        event(BreakEcho("Data dependent operator", "GB0033", because="0.1"), number=3),
        *captured,
        *(event(body, number=n) for n, body in enumerate(graphs, 4)),
        event(ReproWritten("0.1", "repros/gb0170_model_8.py", "torch is not installed"), number=8),
        event(
            LogRead(
                "model.log",
                formats=("torch-logs", "tt-xla"),
                flags=("TORCH_LOGS=+dynamo", "TTXLA_LOGGER_LEVEL=DEBUG"),
                build="debug",
                cut_tail=True,
                interleaved="tagged",
                unread=3,
            ),
            number=9,
        ),
    )


def hostile_benchmark() -> Run:
    bad = row(HOSTILE, HOSTILE, 3.0, eager=4.0, notes=(HOSTILE,), constraints=HOSTILE)
    names = {"device": HOSTILE, "dtype": HOSTILE, "compile_mode": HOSTILE}
    machine = Machine(
        name=HOSTILE, cpu=HOSTILE, accelerators=(HOSTILE,), python=HOSTILE, torch=HOSTILE
    )
    bodies: list[Body] = [
        msgspec.structs.replace(machine, packages={HOSTILE: HOSTILE}, problem=HOSTILE),
        msgspec.structs.replace(machine, name="other"),
        row(HOSTILE, "eager", 4.0),
        bad,
        Benchmark(model=HOSTILE, backend=HOSTILE, error=HOSTILE, **names),  # type: ignore[arg-type]
    ]
    events = [Event(id=f"0.{n}", time_ns=n, pid=1, body=body) for n, body in enumerate(bodies)]
    header = RunHeader(run="", tool="0.1.0", command=(HOSTILE,), host=HOSTILE)
    return Run(header, events, MemoryArtifacts())


RUNS = {
    name: _named(name, run)
    for name, run in {
        "empty": run_of(),
        "nothing": run_of(ended=False),
        "full": full_run(),
        "later": later_run(),
        "ranks": ranks_run(),
        "sized": sized_run(),
        "hostile": hostile_run(),
        "logged": logged_run(),
        "models": benchmark_run(),
        "bench-hostile": hostile_benchmark(),
        "swept": sweep_run(),
        "badswept": hostile_sweep(HOSTILE),
    }.items()
}
