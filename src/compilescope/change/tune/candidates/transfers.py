"""Batches that travel to the device while it works: pinned memory, copies that don't block."""

from __future__ import annotations

from compilescope.change.fixes.compilation.settings import set_keyword
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def _propose(tuned: TunedProgram) -> Patch:
    tuned.needs_cuda("copies to a device need")
    module = next((m for m in tuned.modules if m.path == tuned.place.file), None)
    if module is None:
        raise Refused("the step is not in one of your own files")
    calls = [node for node in module.walk() if isinstance(node, cst.Call)]
    copies = [node for node in calls if _is_copy(module, node)]
    if not copies:
        raise Refused("no .to(device) or .cuda() stands in a loop of the step's file")
    edits = {module.path: Edit(module)}
    for node in copies:
        set_keyword(edits[module.path], node, "non_blocking", "True")
    for each in tuned.modules:
        for call in each.walk():
            if isinstance(call, cst.Call) and _is_loader(each, call):
                set_keyword(edits.setdefault(each.path, Edit(each)), call, "pin_memory", "True")
    return Patch({p: text for edit in edits.values() for p, text in edit.files().items()})


def _is_loader(module: SourceModule, node: cst.Call) -> bool:
    """One that does not say where its batches lie."""
    if _keyword(node, "pin_memory") is not None:
        return False
    return module.calls(node, "torch.utils.data.DataLoader")


def _is_copy(module: SourceModule, node: cst.CSTNode) -> bool:
    """Of a batch, in a loop: `x = x.to(device)`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    name = node.func.attr.value
    if name not in ("to", "cuda") or _keyword(node, "non_blocking") is not None:
        return False
    if name == "to" and not (node.args and _names_device(module.code(node.args[0].value))):
        return False
    return module.around(node, cst.For) is not None


def _names_device(text: str) -> bool:
    return "device" in text.lower() or "cuda" in text


def _keyword(call: cst.Call, name: str) -> cst.Arg | None:
    return next((a for a in call.args if a.keyword is not None and a.keyword.value == name), None)


CANDIDATE = TuneCandidate(
    id="async-transfers",
    title="pinned memory and copies that don't block",
    price="Pinned memory cannot be swapped out.",
    propose=_propose,
    order=42,
)
