"""All calls of a function that needs no gradients are made without them."""

from __future__ import annotations

from compilescope.fixes.arguments.calls import CallSite
from compilescope.fixes.arguments.edits import CallEdits
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.fixes.values.graph_values import graph_values
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.trees import cst

_MODES = ("torch.no_grad", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad")
_OTHERS = ("torch.inference_mode", "torch.set_grad_enabled", "torch.enable_grad")


def _propose(subject: Subject) -> Patch:
    frame = subject.frame
    if frame is not None and not subject.program.facts.seen:
        values = graph_values(subject.program.run)
        own = subject.program.is_own(frame.file) and frame.function != "<module>"
        here = (frame.file, frame.function) in values.with_grad
        if here or (values.computes_grad and not own):
            raise Refused(f"the results of `{frame.function}` have gradients, which may be used")
    edits = CallEdits(subject)
    bare = [site for site in edits.sites if not _is_without(site)]
    if len(bare) == len(edits.sites):
        raise Refused("no call is inside `with torch.no_grad()`, so the mode comes from elsewhere")
    for site in bare:
        line = site.module.statement_of(site.call)
        if not isinstance(line, cst.SimpleStatementLine):
            raise Refused("a call is in the header of a larger statement")
        site.module.block_of(line)
        edit = edits.edit(site)
        made = edit.statements(f"with {edit.module_name('torch')}.no_grad():\n    pass")[0]
        assert isinstance(made, cst.With)
        inner = line.with_changes(leading_lines=())
        edit.replace_statement(line, [made.with_changes(body=made.body.with_changes(body=[inner]))])
    files = edits.files()
    if not files:
        raise NotMeant("every call already runs without gradients")
    return Patch(files)


def _is_without(site: CallSite) -> bool:
    module = site.module
    for above in module.ancestors(site.call):
        if isinstance(above, cst.With):
            for item in above.items:
                if module.calls(item.item, *_OTHERS):
                    raise Refused("a call is in a block with another mode")
                if module.calls(item.item, *_MODES):
                    return True
        if isinstance(above, cst.FunctionDef):
            names = [each.decorator for each in above.decorators]
            names = [each.func if isinstance(each, cst.Call) else each for each in names]
            return any(module.meaning(each) & {*_MODES, "torch.inference_mode"} for each in names)
    return False


FIX = Fix(
    id="no-grad-around",
    title="make every call under torch.no_grad()",
    rules=frozenset({"recompile/grad-mode"}),
    order=90,
    kind="source",
    why="If nothing that the function reads needs gradients, the mode changes no result. If "
    "something does, outputs would lose `requires_grad`, which verification compares.",
    propose=_propose,
)
