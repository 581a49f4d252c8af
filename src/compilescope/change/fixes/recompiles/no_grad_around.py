"""All calls of a function that needs no gradients are made without them."""

from __future__ import annotations

from compilescope.change.fixes.arguments.calls import CallSite
from compilescope.change.fixes.arguments.edits import CallEdits
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import graph_values
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import bound_names
from compilescope.knowledge.source.trees import cst, kinds

_BINDING = kinds(lambda: (cst.Assign, cst.AnnAssign, cst.AugAssign))
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
        _check_untrained(site)
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


def _check_untrained(site: CallSite) -> None:
    """Raises `Refused` where what the call returns goes into a backward pass."""
    module = site.module
    scope = module.function_of(site.call) or module.tree
    # Where the same code trains and evaluates, each takes its own graph, however often it switches.
    made = bound_names([module.statement_of(site.call)])
    parts = [each for each in module.walk(scope) if isinstance(each, _BINDING)]
    while True:
        more = {
            name
            for part in parts
            if made & module.names_in(part) or site.call in module.walk(part)
            for name in bound_names([part])
        }
        if more <= made:
            break
        made |= more
    for each in module.walk(scope):
        func = each.func if isinstance(each, cst.Call) else None
        if isinstance(func, cst.Attribute) and func.attr.value == "backward":
            needs = site.call in module.walk(func) or made & module.names_in(func)
            if needs:
                raise Refused(
                    f"`{short(module, each)}` needs the gradients of a call outside of it: training "
                    "and evaluation take a graph each, however often they alternate"
                )


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
