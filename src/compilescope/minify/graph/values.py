"""The numbers of a captured graph: of its inputs from the record, of all else by running it.

What was computed once is kept beside the record, if it is small.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from compilescope.minify.graph.record import VALUES, Record
from compilescope.minify.graph.surgery import with_outputs
from compilescope.minify.script.writing import script_text
from compilescope.model.written_graph import names_used

_KEPT = "computed"
_MOST_KEPT_BYTES = 64 << 20


def saved_values(folder: Path, record: Record, names: Sequence[str]) -> dict[str, Any]:
    """The tensors of these names in the graph that was captured."""
    given = {each.saved for each in record.graph.inputs if each.fill == "saved"}
    found = _read(folder / VALUES, [name for name in names if name in given])
    for name in names:
        if name not in found:
            found.update(_read(folder / _KEPT / f"{name}.safetensors", [name]))
    missing = [name for name in names if name not in found]
    if missing:
        computed = _computed(folder, record, missing)
        _keep(folder / _KEPT, computed)
        found.update(computed)
    return found


def _read(file: Path, names: Sequence[str]) -> dict[str, Any]:
    if not names or not file.exists():
        return {}
    from safetensors import safe_open

    with safe_open(file, framework="pt") as tensors:
        there = set(tensors.keys())
        return {name: tensors.get_tensor(name) for name in names if name in there}


def _computed(folder: Path, record: Record, names: Sequence[str]) -> dict[str, Any]:
    """Run the captured graph up to the last of them."""
    graph = record.graph
    last = max(at for at, op in enumerate(graph.ops) if op.name in names)
    graph = msgspec.structs.replace(graph, ops=graph.ops[: last + 1])
    used = {name for op in graph.ops for name in names_used(op)}
    graph = msgspec.structs.replace(
        with_outputs(graph, names),
        inputs=tuple(each for each in graph.inputs if each.name in used or not each.attribute),
    )
    setting = msgspec.structs.replace(record.setting, backward=False)
    shown = msgspec.structs.replace(record.shown, kind="failure", expected=())
    text = script_text(graph, setting, shown, torch_version=record.torch)
    given = [each.saved for each in graph.inputs if each.fill == "saved"]
    space: dict[str, Any] = {"__name__": "__values__", "__file__": "repro.py"}
    space["saved"] = _read(folder / VALUES, given)
    exec(compile(text, "captured.py", "exec"), space)
    results = space["eager"]()
    return {name: result.clone() for name, result in zip(names, results, strict=True)}


def _keep(folder: Path, computed: Mapping[str, Any]) -> None:
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    for name, value in computed.items():
        if value.numel() * value.element_size() > _MOST_KEPT_BYTES:
            continue
        draft = folder / f"{name}.{os.getpid()}.part"
        save_file({name: value.cpu().contiguous()}, draft)
        draft.replace(folder / f"{name}.safetensors")


def export_values(payload: dict[str, Any]) -> dict[str, Any]:
    """A task for the sandbox: writes the numbers that a script needs, cut to its shapes.

    Tiny ones come back as source instead.
    """
    from safetensors.torch import save_file

    folder = Path(payload["folder"])
    record = msgspec.json.decode((folder / "record.json").read_bytes(), type=Record)
    shapes = payload["shapes"]
    found = saved_values(folder, record, list(shapes))
    written: dict[str, str] = {}
    kept = {}
    for name, shape in shapes.items():
        value = found[name][tuple(slice(size) for size in shape)].cpu()
        if value.numel() <= payload["most_inline"] and not value.dtype.is_complex:
            written[name] = _source(value.tolist())
        else:
            kept[name] = value.contiguous().clone()
    if kept:
        save_file(kept, payload["file"])
    return {"inline": written, "filed": sorted(kept)}


def _source(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_source, value))}]"
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return f"float('{value}')"
    return repr(value)
