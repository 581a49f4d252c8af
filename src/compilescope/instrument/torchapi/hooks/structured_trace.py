"""Graphs, output code and cache accesses, from the records torch offers to TORCH_TRACE.

Only the records we want are ever rendered; the rest pass untouched.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from torch.fx import GraphModule

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.graphs.fx import origins, portable
from compilescope.instrument.torchapi.graphs.graph_printer import GraphPrinter
from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.instrument.torchapi.hooks.kernel_calls import current_graph, take_calls
from compilescope.instrument.torchapi.stacks import callers, code_ref, origin, region
from compilescope.record.bodies import GraphCaptured, GraphStage, KernelEmitted
from compilescope.record.cache_key import cache_access
from compilescope.record.graph import Graph, KernelOrigins, encode_graph, encode_origins
from compilescope.record.stack import CodeRef, Frame
from compilescope.record.storms import MOST_KEPT, compilation_number

_STAGES: dict[str, GraphStage] = {
    "aot_joint_graph": "aot_joint",
    "aot_forward_graph": "aot_forward",
    "aot_backward_graph": "aot_backward",
    "aot_inference_graph": "aot_inference",
    "inductor_post_grad_graph": "post_grad",
}
_LOCALS: dict[GraphStage, str] = {
    "aot_joint": "fx_g",
    "aot_forward": "fw_module",
    "aot_backward": "bw_module",
}
"""What the function that writes the record calls the graph (torch 2.13)."""
_WANTED = frozenset({"artifact", "dynamo_output_graph", "inductor_output_code", *_STAGES})
_CACHE = re.compile(r"^(fx_graph|aotautograd)_cache_(hit|miss|bypass)$")
_KERNEL = re.compile(
    r"^(?:async_compile\.\w+\(|)(\w+) = async_compile\.(?:triton|cpp\w*|cuda)", re.M
)
_printer = GraphPrinter()
"""Of the process: what it finds out about this torch holds for all captures."""


def _record(watch: Watch, call: HookedCall) -> None:
    name = call["name"]
    if name == "artifact":
        name = call["metadata_fn"]().get("name", "")
        cache = _CACHE.match(name)
        if cache:
            _write_cache_access(watch, cache, _closure(call["payload_fn"]))
        elif name in _STAGES:
            _write_text_graph(watch, _STAGES[name], call["payload_fn"])
    elif name == "dynamo_output_graph":
        _write_dynamo_graph(watch, call)
    elif name == "inductor_output_code":
        _write_output_code(watch, call)
    else:
        _write_text_graph(watch, _STAGES[name], call["payload_fn"])


def _write_dynamo_graph(watch: Watch, call: HookedCall) -> None:
    seen = {**_closure(call["payload_fn"]), **_closure(call.get("metadata_fn"))}
    module = next((value for value in seen.values() if isinstance(value, GraphModule)), None)
    output_graph = seen.get("self")
    translator = getattr(output_graph, "root_tx", None)
    frame = code_ref(translator.f_code) if translator is not None else None
    reason = getattr(module, "compile_subgraph_reason", None)
    compile_id = current_compile_id()
    kept = watch.calls or module is None or compilation_number(compile_id) < MOST_KEPT
    graph = _portable(watch, module) if module is not None and kept else None
    nodes, ops = (len(graph.nodes), graph.ops) if graph else _counts(module)
    body = GraphCaptured(
        stage="dynamo",
        text=watch.sink.artifact(_printer.text(module, call["payload_fn"]), "py") if kept else None,
        graph=watch.sink.artifact(encode_graph(graph), "json") if graph else None,
        nodes=nodes,
        ops=ops,
        backend=_backend_name(getattr(output_graph, "compiler_fn", None)),
        frame=frame,
        region=region() or frame,
        ended_by_break=getattr(reason, "graph_break", None),
        reason=str(getattr(reason, "reason", ""))[:500],
    )
    # A preflight says who called what has no line of its own, such as an `nn.Sequential`.
    above = callers() if watch.calls else ()
    # What is kept must be there should the backend bring the program down; a count can wait.
    watch.frame.graph_id = watch.sink.emit(
        body, above, compile_id=compile_id, sources=_files(graph, frame), more=not kept
    )


def _counts(module: GraphModule | None) -> tuple[int | None, int | None]:
    """Nodes, and those of them that compute."""
    if module is None:
        return None, None
    kinds = [node.op for node in module.graph.nodes]
    return len(kinds), sum(kind.startswith("call_") for kind in kinds)


def _portable(watch: Watch, module: GraphModule) -> Graph:
    if not watch.calls:
        return portable(module)
    # Only preflights ask for more: other programs need not load all that it takes.
    from compilescope.instrument.torchapi.graphs.described_graph import judged_graph

    return judged_graph(module)


def _files(graph: Graph | None, code: CodeRef | None) -> Iterable[Frame]:
    """One frame for each file that the graph came from."""
    files: dict[str, Frame] = {}
    if code is not None:
        files[code.file] = Frame(code.file, code.line, code.function, origin=origin(code.file))
    if graph is not None:
        frames = [node.frame for node in graph.nodes if node.frame is not None]
        for frame in (*frames, *(frame for stack in graph.stacks for frame in stack)):
            files.setdefault(frame.file, frame)
    return files.values()


def _backend_name(compiler: Any) -> str | None:
    from torch._dynamo.eval_frame import innermost_fn

    if compiler is None:
        return None
    inner = innermost_fn(compiler)
    name = getattr(inner, "compiler_name", None) or getattr(inner, "__name__", None)
    return str(name or type(inner).__name__)


def _write_text_graph(watch: Watch, stage: GraphStage, payload: Callable[[], Any]) -> None:
    compile_id = current_compile_id()
    if compilation_number(compile_id) >= MOST_KEPT and not watch.calls:
        module = _live_module(stage, payload)
        if module is not None:
            body = GraphCaptured(stage=stage, ops=_counts(module)[1])
            watch.sink.emit(body, compile_id=compile_id)
            return
    text = payload()
    if not text:
        return
    # One assignment a line is one node; the text is all that torch offers here.
    ops = len(re.findall(r"^[ \t]+\w+(?::[ \t]*\"[^\"\n]*\")? = (?!self\.)", text, re.M))
    module = _live_module(stage, payload)
    judged = watch.calls and stage == "aot_backward" and module is not None
    graph = _portable(watch, module) if judged and module is not None else None
    body = GraphCaptured(
        stage=stage,
        text=watch.sink.artifact(str(text), "py"),
        graph=watch.sink.artifact(encode_graph(graph), "json") if graph else None,
        ops=ops,
        origins=watch.sink.artifact(encode_origins(origins(module)), "json") if module else None,
    )
    watch.sink.emit(body, compile_id=compile_id)


def _live_module(stage: GraphStage, payload: Callable[[], Any]) -> GraphModule | None:
    """The graph behind a record's text, if it is still there: a cached one is text alone."""
    for value in _closure(payload).values():
        if isinstance(value, GraphModule):
            return value
    if stage not in _LOCALS:
        return None
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("compilescope."):
        frame = frame.f_back
    module = frame.f_locals.get(_LOCALS[stage])
    return module if isinstance(module, GraphModule) else None


def _write_output_code(watch: Watch, call: HookedCall) -> None:
    text = call["payload_fn"]()
    if not text:
        return
    file = call["metadata_fn"]().get("filename", "") if call.get("metadata_fn") else ""
    kernels = tuple(dict.fromkeys(_KERNEL.findall(text)))
    body = KernelEmitted(
        artifact=watch.sink.artifact(str(text), "py"),
        file=str(file or ""),
        kernels=kernels,
        origins=_kernel_origins(watch),
    )
    watch.sink.emit(body, compile_id=current_compile_id())


def _kernel_origins(watch: Watch) -> str | None:
    """Code from a cache was lowered in another process, or earlier: nobody knows of what."""
    graph = current_graph()
    calls = take_calls(watch, graph) if graph is not None else ()
    if not calls:
        return None
    module = getattr(graph, "module", None)
    known = KernelOrigins(calls, origins(module)) if module is not None else KernelOrigins(calls)
    return watch.sink.artifact(encode_origins(known), "json")


def _write_cache_access(watch: Watch, name: re.Match[str], seen: dict[str, Any]) -> None:
    info = next((value for value in seen.values() if isinstance(value, dict)), {})
    compile_id = current_compile_id()
    kept = compilation_number(compile_id) < MOST_KEPT
    body = cache_access(name[1], name[2], info, watch.sink.artifact if kept else None)
    watch.sink.emit(body, compile_id=compile_id)


def _closure(function: Any) -> dict[str, Any]:
    """The variables a lambda closes over: the live objects behind a record's text."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or not cells:
        return {}
    found = {}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError as error:
            let_through(error)
            continue  # Not assigned yet.
    return found


HOOK = Hook(
    id="structured-trace",
    module="torch._logging._internal",
    target="trace_structured",
    loses="graphs, output code and cache accesses",
    before=_record,
    first=_WANTED,
    everywhere=True,
    logs=True,
)
