"""Traces to take apart: recorded ones, and ones made of a few lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

from builders import ROOT, event, run_of
from compilescope.knowledge.profiles.calls import CallPlace, StepPlaces, UserLine
from compilescope.knowledge.profiles.kernel_rows import Roof
from compilescope.knowledge.profiles.trace import STEP, Trace, TraceSpan, read_stored
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import SourceSeen, StepsProfiled
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef

RECORDED = Path(__file__).parent / "h200"
"""A GPT of six layers in training, torch 2.11 on an H200, two steps of each. The step without the
profiler took, in ms: default 11.590, cudagraphs 3.585, item 9.388, starved 29.750, copies 8.940.
And `new_sizes`: five steps of `benchmarks/planted/new_sizes.py`, 11.064 ms each."""
STEP_US = {
    "default": 11590.0,
    "cudagraphs": 3585.0,
    "item": 9388.0,
    "starved": 29750.0,
    "copies": 8940.0,
    "new_sizes": 11064.0,
}


CPU_RECORDED = Path(__file__).parent / "cpu"
"""Two steps of each of `planted_steps.py`, torch 2.13 on a CPU."""


class CpuRecord(msgspec.Struct):
    """What a profile of a program on the CPU is made of."""

    step_ns: tuple[int, ...]
    trace: str
    places: str


def cpu_run(name: str) -> Run:
    """A recorded profile of the CPU as a run."""
    text = gzip.decompress((CPU_RECORDED / f"{name}.json.gz").read_bytes())
    kept = msgspec.json.decode(text, type=CpuRecord)
    artifacts = MemoryArtifacts()
    told = StepsProfiled(
        region=CodeRef("planted_steps.py", 1, "step"),
        steps=len(kept.step_ns),
        step_ns=kept.step_ns,
        trace=artifacts.put(kept.trace, "profile"),
        places=artifacts.put(kept.places, "places"),
        matmul_precision="highest",
    )
    run = run_of(event(told, number=0))
    return Run(run.header, run.events, artifacts)


def recorded(name: str) -> Trace:
    return read_stored(gzip.decompress((RECORDED / f"{name}.profile.gz").read_bytes()).decode())


def kernels_us(trace: Trace) -> float:
    """Of all device work that was asked for within the steps, a step."""
    start, end = trace.steps[0].start, trace.steps[-1].end
    asked = trace.launches
    times = [
        span.duration
        for span in trace.device
        if start <= asked.get(span.correlation, span).start < end
    ]
    return sum(times) / len(trace.steps)


def host(
    name: str, start: float, end: float, kind: str = "cpu_op", correlation: int = 0
) -> TraceSpan:
    return TraceSpan(name, kind, start, end, lane=1, correlation=correlation)


def launch(at: float, correlation: int) -> TraceSpan:
    return host("cudaLaunchKernel", at, at + 1, "cuda_runtime", correlation)


def kernel(name: str, start: float, end: float, correlation: int, stream: int = 7) -> TraceSpan:
    kind = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
    return TraceSpan(name, kind, start, end, lane=stream, device=0, correlation=correlation)


def one_step(*spans: TraceSpan, end: float = 100.0) -> Trace:
    return Trace.of([host(f"{STEP}#0", 0, end, "user_annotation"), *spans], [])


PROGRAM = f"{ROOT}/train.py"
H200 = Roof(4.1e12, {"float32": 5.1e13, "tf32": 4.2e14})
PRODUCT_FLOPS, PRODUCT_BYTES = 4e8, 8e6
"""Of each call of `aten::addmm` in a profiled run, all from line 2 of the program."""


def profiled_run(roof: Roof | None = H200, name: str = "default") -> Run:
    """A recorded trace as a run; what its products compute is not in it, and made up."""
    artifacts = MemoryArtifacts()
    product = CallPlace(
        "aten::addmm",
        UserLine(PROGRAM, 2, "forward"),
        dtypes=("float32",),
        flops=PRODUCT_FLOPS,
        bytes=PRODUCT_BYTES,
    )
    places = StepPlaces([product] * 100)
    stored = gzip.decompress((RECORDED / f"{name}.profile.gz").read_bytes()).decode()
    told = StepsProfiled(
        region=CodeRef(PROGRAM, 1, "forward"),
        steps=len(recorded(name).steps),
        step_ns=(int(STEP_US[name] * 1e3),),
        trace=artifacts.put(stored, "profile"),
        places=artifacts.put(msgspec.json.encode(places).decode(), "json"),
        matmul_precision="highest",
        device="NVIDIA H200",
        roof=msgspec.json.encode(roof).decode() if roof is not None else "",
    )
    source = SourceSeen(PROGRAM, artifacts.put("def forward(x):\n    return layer(x)\n", "py"))
    events = (event(source, number=0), event(told, number=1))
    run = run_of(*events)
    return Run(run.header, run.events, artifacts)
