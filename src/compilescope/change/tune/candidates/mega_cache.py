"""Compiled code in one file (torch's mega-cache): a start with empty caches loads it."""

from __future__ import annotations

import os

from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.trees import cst

MEGA_CACHE = "mega-cache"
VARIABLE = "CACHE_ARTIFACTS"
"""Of the new lines: where the file is. A search keeps its own out of the user's folders."""
_LINES = """
{name} = {pathlib}.Path({os}.environ.get("{variable}", "{file}")).absolute()
if {name}.exists():
    {torch}.compiler.load_cache_artifacts({name}.read_bytes())


@{atexit}.register
def {save}():
    saved = {torch}.compiler.save_cache_artifacts()
    if saved is not None:
        {name}.write_bytes(saved[0])
"""


def _propose(tuned: TunedProgram) -> Patch:
    if not tuned.facts.cache_artifacts:
        raise Refused("unavailable: this torch has no torch.compiler.save_cache_artifacts")
    if tuned.facts.ranks > 1:
        raise Refused("all ranks would write its one file at the same time")
    tuned.needs_inductor()
    edit = tuned.main_edit()
    module = edit.module
    known = ("torch.compiler.load_cache_artifacts", "torch.compiler.save_cache_artifacts")
    if any(isinstance(each, cst.Call) and module.calls(each, *known) for each in module.walk()):
        raise NotMeant("the program loads or saves cache artifacts itself")
    stem = os.path.splitext(os.path.basename(module.path))[0]
    names = {each: edit.module_name(each) for each in ("torch", "atexit", "os", "pathlib")}
    lines = _LINES.format(
        **names,
        name=module.fresh_name("artifacts"),
        save=module.fresh_name("save_artifacts"),
        variable=VARIABLE,
        file=f"{stem}.artifacts",
    )
    edit.put_setting(lines, "torch", apart=True)
    return Patch(edit.files())


CANDIDATE = TuneCandidate(
    id=MEGA_CACHE,
    title="load what an earlier run compiled, from one file (mega-cache)",
    price="A file to keep and to take along; load your own alone: torch unpickles it.",
    propose=_propose,
    order=80,
    for_compile_time=True,
    only_starts=True,
)
