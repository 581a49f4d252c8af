"""Graphs, output code and cache accesses, from the records torch offers to TORCH_TRACE.

Only the records we want are ever rendered; the rest pass untouched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from torch.fx import GraphModule

from compilescope.model.bodies import CacheAccess, GraphCaptured, GraphStage, KernelEmitted
from compilescope.model.graph import encode_graph
from compilescope.torchapi.compile_ids import current_compile_id
from compilescope.torchapi.fx_graph import portable
from compilescope.torchapi.hook import Call, Hook, Watch
from compilescope.torchapi.stacks import code_ref, region

_STAGES: dict[str, GraphStage] = {
    "aot_joint_graph": "aot_joint",
    "aot_forward_graph": "aot_forward",
    "aot_backward_graph": "aot_backward",
    "aot_inference_graph": "aot_inference",
    "inductor_post_grad_graph": "post_grad",
}
_WANTED = frozenset({"artifact", "dynamo_output_graph", "inductor_output_code", *_STAGES})
_CACHE = re.compile(r"^(fx_graph|aotautograd)_cache_(hit|miss|bypass)$")
_KERNEL = re.compile(
    r"^(?:async_compile\.\w+\(|)(\w+) = async_compile\.(?:triton|cpp\w*|cuda)", re.M
)


def _wants(args: tuple[Any, ...]) -> bool:
    return bool(args) and args[0] in _WANTED


def _record(watch: Watch, call: Call) -> None:
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


def _write_dynamo_graph(watch: Watch, call: Call) -> None:
    seen = {**_closure(call["payload_fn"]), **_closure(call.get("metadata_fn"))}
    module = next((value for value in seen.values() if isinstance(value, GraphModule)), None)
    output_graph = seen.get("self")
    translator = getattr(output_graph, "root_tx", None)
    frame = code_ref(translator.f_code) if translator is not None else None
    reason = getattr(module, "compile_subgraph_reason", None)
    graph = portable(module) if module is not None else None
    body = GraphCaptured(
        stage="dynamo",
        text=watch.sink.artifact(call["payload_fn"](), "py"),
        graph=watch.sink.artifact(encode_graph(graph), "json") if graph else None,
        nodes=len(graph.nodes) if graph else None,
        ops=graph.ops if graph else None,
        backend=_backend_name(getattr(output_graph, "compiler_fn", None)),
        frame=frame,
        region=region() or frame,
        ended_by_break=getattr(reason, "graph_break", None),
        reason=str(getattr(reason, "reason", ""))[:500],
    )
    watch.frame.graph_id = watch.sink.emit(body, compile_id=current_compile_id())


def _backend_name(compiler: Any) -> str | None:
    from torch._dynamo.eval_frame import innermost_fn

    if compiler is None:
        return None
    inner = innermost_fn(compiler)
    name = getattr(inner, "compiler_name", None) or getattr(inner, "__name__", None)
    return str(name or type(inner).__name__)


def _write_text_graph(watch: Watch, stage: GraphStage, payload: Callable[[], Any]) -> None:
    text = payload()
    if not text:
        return
    # One assignment a line is one node; the text is all that torch offers here.
    ops = len(re.findall(r"^\s+\w+(?::\s*\".*?\")? = (?!self\.)", text, re.M))
    body = GraphCaptured(stage=stage, text=watch.sink.artifact(str(text), "py"), ops=ops)
    watch.sink.emit(body, compile_id=current_compile_id())


def _write_output_code(watch: Watch, call: Call) -> None:
    text = call["payload_fn"]()
    if not text:
        return
    file = call["metadata_fn"]().get("filename", "") if call.get("metadata_fn") else ""
    kernels = tuple(dict.fromkeys(_KERNEL.findall(text)))
    body = KernelEmitted(watch.sink.artifact(str(text), "py"), str(file or ""), kernels)
    watch.sink.emit(body, compile_id=current_compile_id())


def _write_cache_access(watch: Watch, name: re.Match[str], seen: dict[str, Any]) -> None:
    info = next((value for value in seen.values() if isinstance(value, dict)), {})
    cache: Literal["fx_graph", "aot_autograd"] = (
        "fx_graph" if name[1] == "fx_graph" else "aot_autograd"
    )
    key = str(info.get("key") or "")
    reason = str(info.get("cache_bypass_reason") or "")[:500]
    body = CacheAccess(cache, name[2], key, reason)  # type: ignore[arg-type]
    watch.sink.emit(body, compile_id=current_compile_id())


def _closure(function: Any) -> dict[str, Any]:
    """The variables a lambda closes over: the live objects behind a record's text."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or not cells:
        return {}
    found = {}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # Not assigned yet.
    return found


HOOK = Hook(
    id="structured-trace",
    module="torch._logging._internal",
    target="trace_structured",
    loses="graphs, output code and cache accesses",
    before=_record,
    wants=_wants,
    everywhere=True,
    logs=True,
)
