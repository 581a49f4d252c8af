"""Batches that travel to the device while it works: pinned memory, copies that don't block."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.compilation.settings import set_keyword
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.knobs import NON_BLOCKING, PINNED, keywords_of, set_knob
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def _propose(tuned: TunedProgram) -> Patch:
    tuned.needs_cuda("copies to a device need")
    module = tuned.step_module
    copies = list(_copies(module)) if module is not None else []
    if module is None or not copies:
        return Patch(_by_framework(tuned))
    edit = Edit(module)
    for call in copies:
        set_keyword(edit, call, "non_blocking", "True")
    return Patch(_pinned(tuned, {module.path: edit}))


def _by_framework(tuned: TunedProgram) -> dict[str, str]:
    """Where the user's loop copies nothing: arguments of what does. It may do so anyhow."""
    files = set_knob(tuned, NON_BLOCKING, "True")
    files |= set_knob(tuned.with_files(files), PINNED, "True")
    files |= _pinned(tuned.with_files(files), {})
    if not files:
        raise Refused("no .to(device) or .cuda() stands in a loop of your own, and no DataLoader")
    return files


def _pinned(tuned: TunedProgram, edits: dict[str, Edit]) -> dict[str, str]:
    """New texts in which loaders pin memory, on top of these."""
    for each in tuned.modules("DataLoader"):
        for call in each.walk():
            if isinstance(call, cst.Call) and _is_loader(each, call):
                set_keyword(edits.setdefault(each.path, Edit(each)), call, "pin_memory", "True")
    return {path: text for edit in edits.values() for path, text in edit.files().items()}


def _is_loader(module: SourceModule, node: cst.Call) -> bool:
    """One that does not say where its batches lie."""
    known = "pin_memory" in keywords_of(node)
    return not known and module.calls(node, "torch.utils.data.DataLoader")


def _copies(module: SourceModule) -> Iterator[cst.Call]:
    """Of batches, in loops: `x = x.to(device)`."""
    for node in module.walk():
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            continue
        name, place = node.func.attr.value, node.args[0].value if node.args else None
        if name == "to":
            copies = place is not None and _names_device(module.code(place))
        else:
            copies = name == "cuda"
        copies = copies and "non_blocking" not in keywords_of(node)
        if copies and module.around(node, cst.For) is not None:
            yield node


def _names_device(text: str) -> bool:
    return "device" in text.lower() or "cuda" in text


CANDIDATE = TuneCandidate(
    id="async-transfers",
    title="pinned memory and copies that don't block",
    price="Pinned memory cannot be swapped out.",
    propose=_propose,
    order=42,
)
