"""Graphs of all stages, Inductor's output code with where it came from, and cache accesses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from compilescope.base.patterns import late
from compilescope.logs.trace.process import TracedProcess
from compilescope.logs.trace.record import TraceRecord
from compilescope.record.bodies import GraphCaptured, GraphStage, KernelEmitted
from compilescope.record.cache_key import cache_access
from compilescope.record.graph import KernelCall, KernelOrigins, Origins, encode_origins

STAGES: dict[str, GraphStage] = {
    "dynamo_output_graph": "dynamo",
    "aot_joint_graph": "aot_joint",
    "aot_forward_graph": "aot_forward",
    "aot_backward_graph": "aot_backward",
    "aot_inference_graph": "aot_inference",
    "inductor_post_grad_graph": "post_grad",
}
CACHE = late(r"^(fx_graph|aotautograd)_cache_(hit|miss|bypass)$")
PROVENANCE = "inductor_provenance_tracking_node_mappings"
_OPS = late(rb"\n\t[ \t]+\w+(?::[ \t]*\"[^\"\n]*\")? = (?!self\.|[A-Za-z_]\w*(?:;|\n|$))")
"""One assignment a line is one node; those that only rename an input are none."""
_AOT_ID = late(rb"# AOT ID: \['\w*?_?(forward|backward|inference)'\]")
_INNER = late(rb"\n\t +class \w")
_KERNEL = late(rb"\t?(?:async_compile\.\w+\(|)(\w+) = async_compile\.(?:triton|cpp|cuda)")
_DEFINED = b" = async_compile."


def graph(process: TracedProcess, record: TraceRecord, stage: GraphStage) -> None:
    compilation = process.compilation(record)
    ops = len(_OPS.findall(record.payload, 0, _end_of_graph(record.payload)))
    text = process.payload(record, "py")
    if stage != "dynamo":
        process.emit(record, GraphCaptured(stage=stage, text=text, ops=ops))
        return
    last = compilation.breaks[-1][1] if compilation.breaks else None
    body = GraphCaptured(
        stage=stage,
        text=text,
        ops=ops,
        frame=compilation.code,
        region=compilation.region or compilation.code,
        ended_by_break=last is not None,
        reason=last.gb_type if last is not None else "",
    )
    process.writer.sources(compilation.callers)
    process.emit(record, body)


def _end_of_graph(payload: bytes) -> int:
    """Where the graphs within the graph begin: the branches of a `cond`, bodies of hooks."""
    inner = _INNER.search(payload)
    return inner.start() if inner else len(payload)


def output_code(process: TracedProcess, record: TraceRecord) -> None:
    compilation = process.compilation(record)
    meta = record.line.inductor_output_code
    kernels = tuple(dict.fromkeys(_kernels(record.payload)))
    body = KernelEmitted(
        artifact=process.payload(record, "py"),
        file=(meta.filename or "") if meta else "",
        kernels=kernels,
        origins=_kernel_origins(process, compilation.provenance),
        direction=_direction(record.payload),
    )
    compilation.provenance = b""
    process.emit(record, body)


def _kernels(payload: bytes) -> Iterator[str]:
    """Names that lines begin by defining. Few lines do: only these are looked at."""
    at = payload.find(_DEFINED)
    while at >= 0:
        found = _KERNEL.match(payload, payload.rfind(b"\n", 0, at) + 1)
        if found is not None:
            yield found[1].decode()
        at = payload.find(_DEFINED, at + len(_DEFINED))


def _direction(payload: bytes) -> Literal["", "forward", "backward", "inference"]:
    found = _AOT_ID.search(payload, 0, 300)
    return found[1].decode() if found else ""  # type: ignore[return-value]


def provenance(process: TracedProcess, record: TraceRecord) -> None:
    """Which nodes each kernel was made of; the output code that it is of comes next to it."""
    process.compilation(record).provenance = record.text()
    process.kept.add(record, PROVENANCE, "json")


class _Mappings(msgspec.Struct):
    cppCodeToPost: dict[str, list[str]] = {}
    postToPre: dict[str, list[str]] = {}


_mappings = msgspec.json.Decoder(_Mappings)


def _kernel_origins(process: TracedProcess, text: bytes) -> str | None:
    if not text:
        return None
    try:
        found = _mappings.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    calls = tuple(
        KernelCall(name.partition(":")[0], tuple(nodes))
        for name, nodes in found.cppCodeToPost.items()
    )
    known = KernelOrigins(
        calls, Origins({node: tuple(origin) for node, origin in found.postToPre.items()})
    )
    return process.writer.artifact(encode_origins(known), "json")


class _CacheMeta(msgspec.Struct):
    key: Any = ""
    cache_bypass_reason: Any = ""
    cache_status_detailed: Any = ""
    components: Any = ()


_cache = msgspec.json.Decoder(_CacheMeta)


def cache_lookup(process: TracedProcess, record: TraceRecord, found: re.Match[str]) -> None:
    meta = _CacheMeta()
    try:
        meta = _cache.decode(record.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        process.source.tally.lose(record.payload)
    info = msgspec.structs.asdict(meta)
    process.emit(record, cache_access(found[1], found[2], info, process.writer.artifact))
    process.kept.add(record, found[0], "json")
