"""Traces to take apart: recorded ones, and ones made of a few lines."""

from __future__ import annotations

import gzip
from pathlib import Path

from compilescope.profiles.stored import read_stored
from compilescope.profiles.trace import STEP, Trace, TraceSpan

RECORDED = Path(__file__).parent / "h200"
"""A GPT of six layers in training, torch 2.11 on an H200, two steps of each. The step without the
profiler took, in ms: default 11.590, cudagraphs 3.585, item 9.388, starved 29.750, copies 8.940."""
STEP_US = {
    "default": 11590.0,
    "cudagraphs": 3585.0,
    "item": 9388.0,
    "starved": 29750.0,
    "copies": 8940.0,
}


def recorded(name: str) -> Trace:
    return read_stored(gzip.decompress((RECORDED / f"{name}.profile.gz").read_bytes()).decode())


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
