"""What a sandbox's process does with a captured graph: the tasks, each called with JSON.

`run_trial` tries a candidate's script, `identify` says what is wrong with the graph, if anything,
and `export_values` writes the numbers that a script needs. The numbers of inputs come from the
record, all others by running the graph; what was computed once is kept beside the record.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from compilescope.change.minify.graph.candidate import with_outputs
from compilescope.change.minify.graph.record import RECORD, VALUES, FailingGraph, Setting, Shown
from compilescope.change.minify.judgements import Outcome
from compilescope.change.minify.script.graph_script import script_text
from compilescope.record.written_graph import names_used

TRY = f"{__name__}:run_trial"
IDENTIFY = f"{__name__}:identify"
EXPORT = f"{__name__}:export_values"
_COMPUTED = "computed"
_MOST_KEPT_BYTES = 64 << 20
"""Of one tensor that is kept for later candidates. Chosen: a bound for the disk; a larger one is
computed again."""


def saved_values(folder: Path, record: FailingGraph, names: Sequence[str]) -> dict[str, Any]:
    """The tensors of these names in the graph that was captured."""
    given = {each.saved for each in record.graph.inputs if each.fill == "saved"}
    found = _read(folder / VALUES, [name for name in names if name in given])
    for name in names:
        if name not in found:
            found.update(_read(folder / _COMPUTED / f"{name}.safetensors", [name]))
    missing = [name for name in names if name not in found]
    if missing:
        computed = _computed(folder, record, missing)
        _keep(folder / _COMPUTED, computed)
        found.update(computed)
    return found


def _read(file: Path, names: Sequence[str]) -> dict[str, Any]:
    if not names or not file.exists():
        return {}
    from safetensors import safe_open

    with safe_open(file, framework="pt") as tensors:
        there = set(tensors.keys())
        return {name: tensors.get_tensor(name) for name in names if name in there}


def _computed(folder: Path, record: FailingGraph, names: Sequence[str]) -> dict[str, Any]:
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
    record = msgspec.json.decode((folder / "record.json").read_bytes(), type=FailingGraph)
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


_KEPT: Outcome = "kept"
_LOST: Outcome = "lost"
_INVALID: Outcome = "invalid"
EAGER_RAN = "eager: fine"


def run_trial(payload: dict[str, Any]) -> Outcome:
    """What becomes of a candidate."""
    record = msgspec.json.decode(Path(payload["folder"], RECORD).read_bytes(), type=FailingGraph)
    try:
        shown = script_names(payload["text"], payload["folder"], record, payload["saved"])
    except Exception:  # The border of a worker: a candidate may be nonsense.
        return _INVALID
    return _CHECKS[record.shown.kind](shown, record)


def script_names(
    text: str, folder: str, record: FailingGraph, saved: Sequence[str]
) -> dict[str, Any]:
    """The script's functions."""
    names: dict[str, Any] = {"__name__": "__repro__", "__file__": "repro.py"}
    names["saved"] = saved_values(Path(folder), record, saved)
    exec(compile(text, "repro.py", "exec"), names)
    return names


def violation_outcome(shown: dict[str, Any], record: FailingGraph) -> Outcome:
    """Is the expected violation there, and none that the program does not have?"""
    from compilescope.backends.mock.messages import ConstraintError
    from compilescope.change.minify.violations.kinds import facts, loosely, loosened

    try:
        shown["compiled"]()
    except ConstraintError as error:
        wanted = {loosely(tuple(fact)) for fact in record.shown.expected}
        known = wanted | {loosely(tuple(fact)) for fact in record.shown.also}
        found = loosened(facts(error.violations))
        # What becomes an input is looked at as one for the first time.
        new = {fact for fact in found - known if fact[2] != "input"}
        return _KEPT if wanted <= found and not new else _LOST
    except Exception:  # The border to torch: a candidate may be nonsense.
        return _INVALID
    return _LOST


def _by_verdict(shown: dict[str, Any], record: FailingGraph) -> Outcome:
    try:
        present, _ = shown["main"]()
    except Exception:  # The border to torch: a candidate may be nonsense.
        return _INVALID
    if present is None:
        return _INVALID
    return _KEPT if present else _LOST


def _signal(shown: dict[str, Any], record: FailingGraph) -> Outcome:
    """If it dies, the sandbox sees by what."""
    try:
        shown["eager"]()
    except Exception:  # The border to torch: a candidate may be nonsense.
        return _INVALID
    # For the sandbox, should this process die.
    sys.stdout.write(f"{EAGER_RAN}\n")
    sys.stdout.flush()
    try:
        shown["compiled"]()
    except Exception:  # The border to torch.
        return _INVALID
    return _LOST


def _difference(shown: dict[str, Any], record: FailingGraph) -> Outcome:
    """The script must say so, and the judge of tensors too: a script's rule is a short one."""
    from compilescope.measure.tensors.rounding import judge

    try:
        wanted, found, exact = shown["eager"](), shown["compiled"](), shown["exact"]()
    except Exception:  # The border to torch: a candidate may be nonsense.
        return _INVALID
    if len(wanted) != len(found):
        return _INVALID
    right = exact if exact is not None and len(exact) == len(wanted) else [None] * len(wanted)
    for ours, its, true in zip(wanted, found, right, strict=True):
        seen = shown["difference"](ours, its, true)
        if seen is None or seen[0] != record.shown.expected:
            continue
        if seen[0] == "structure" or judge(ours, its, true).verdict == "fail":
            return _KEPT
    return _LOST


_CHECKS = {
    "violation": violation_outcome,
    "failure": _by_verdict,
    "signal": _signal,
    "difference": _difference,
}


def identify(payload: dict[str, Any]) -> dict[str, Any] | None:
    """`shown` as JSON, or None where nothing is wrong. It raises where eager code fails too."""
    folder = Path(payload["folder"])
    record = msgspec.json.decode((folder / RECORD).read_bytes(), type=FailingGraph)
    kind = "failure" if payload["predicate"] == "crash" else "difference"
    shown = msgspec.structs.replace(record.shown, kind=kind, expected=())
    text = script_text(record.graph, record.setting, shown, torch_version=record.torch)
    saved = [each.saved for each in record.graph.inputs if each.fill == "saved"]
    names = script_names(text, str(folder), record, saved)
    wanted = names["eager"]()
    # For the sandbox, should this process die.
    sys.stdout.write(f"{EAGER_RAN}\n")
    sys.stdout.flush()
    if kind == "failure":
        found = _failure_found(names, record.setting)
    else:
        found = _difference_found(names, wanted, record.setting)
    return None if found is None else msgspec.to_builtins(found)


def _failure_found(names: dict[str, Any], setting: Setting) -> Shown | None:
    from compilescope.change.minify.graph.catcher import shown_failure

    try:
        names["compiled"]()
    except Exception as error:  # The border to torch: that is what is looked for.
        return shown_failure(error, setting)
    return None


def _difference_found(names: dict[str, Any], wanted: list[Any], setting: Setting) -> Shown | None:
    from compilescope.measure.tensors.rounding import judge

    found, exact = names["compiled"](), names["exact"]()
    right = exact if exact is not None and len(exact) == len(wanted) else [None] * len(wanted)
    for number, (ours, its, true) in enumerate(zip(wanted, found, right, strict=False)):
        seen = names["difference"](ours, its, true)
        if seen is None:
            continue
        if seen[0] != "structure" and judge(ours, its, true).verdict != "fail":
            continue
        of = f" of {setting.model}" if setting.model else ""
        return Shown(
            "difference",
            seen[0],
            f"With {setting.backend.name}, this graph{of} gives different results than without it.",
            (f"In the program, result {number} was {seen[1]}.",),
        )
    return None
