"""Batches that are made by other processes while the step works."""

from __future__ import annotations

from compilescope.change.fixes.compilation.settings import set_keyword
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.knobs import LOADER_WORKERS, keywords_of, last_names, set_knob
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_WORKERS = "2"
"""Chosen: one makes a batch while the other's is taken; more only where batches take longer than
two steps."""
_LOADER = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_SET = frozenset({"num_workers", "batch_sampler", "worker_init_fn"})


def _propose(tuned: TunedProgram) -> Patch:
    files = set_knob(tuned, LOADER_WORKERS, _WORKERS)
    if files:
        return Patch(files)
    edits: dict[str, Edit] = {}
    for module in tuned.modules(*last_names(_LOADER)):
        for call in module.walk():
            if not isinstance(call, cst.Call) or not module.calls(call, *_LOADER):
                continue
            if keywords_of(call).keys() & _SET or any(arg.star for arg in call.args):
                raise Refused("the loader already says who makes its batches")
            edit = edits.setdefault(module.path, Edit(module))
            set_keyword(edit, call, "num_workers", _WORKERS)
    if not edits:
        raise Refused("no torch DataLoader is made in one of your own files")
    return Patch({p: text for edit in edits.values() for p, text in edit.files().items()})


CANDIDATE = TuneCandidate(
    id="loader-workers",
    title="batches made by other processes (num_workers)",
    price="So many more processes, each with the dataset; random numbers drawn in it differ.",
    propose=_propose,
    order=60,
)
