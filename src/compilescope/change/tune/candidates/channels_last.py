"""Weights of convolutions with their channels last, as the fastest kernels want them."""

from __future__ import annotations

from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _propose(tuned: TunedProgram) -> Patch:
    if not tuned.facts.convolutions:
        raise Refused("the step has no 2-d convolution")
    if tuned.modules("channels_last"):
        raise Refused("the program sets a memory format itself")
    edits: dict[str, Edit] = {}
    for region in tuned.inductor_regions():
        module, target = region.module, region.target
        if not isinstance(target, (cst.Name, cst.Attribute)):
            continue
        statement = module.statement_of(region.node)
        if isinstance(statement, cst.SimpleStatementLine):
            edit = edits.setdefault(module.path, Edit(module))
            torch = edit.module_name("torch")
            name = module.code(target)
            edit.put_before(region.node, f"{name}.to(memory_format={torch}.channels_last)")
    if not edits:
        raise Refused("no module with a name is compiled in your own files")
    return Patch({p: text for edit in edits.values() for p, text in edit.files().items()})


CANDIDATE = TuneCandidate(
    id="channels-last",
    title="convolution weights with their channels last",
    price="Operators that need the other order copy.",
    propose=_propose,
    order=35,
    helps="compute",
)
