"""Calls that tidy up and give nothing, made in eager runs only."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_TIDYING = {
    "gc.collect",
    "torch.cuda.empty_cache",
    "torch.cuda.synchronize",
    "torch.cuda.reset_peak_memory_stats",
    "torch.cuda.nvtx.range_push",
    "torch.cuda.nvtx.range_pop",
    "torch.mps.synchronize",
    "torch.accelerator.synchronize",
    "time.sleep",
    "faulthandler.dump_traceback",
    "tracemalloc.take_snapshot",
}


def _propose(subject: Subject) -> Patch:
    module, line = subject.module, subject.statement
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        raise NotMeant("the call is part of a larger statement")
    only = line.body[0]
    call = only.value if isinstance(only, cst.Expr) else None
    if not isinstance(call, cst.Call):
        raise NotMeant("the call is part of a larger statement")
    found = sorted(module.meaning(call.func) & _TIDYING)
    if not found:
        raise NotMeant("the call is not known to be safe to skip")
    edit = Edit(module)
    torch = edit.module_name("torch")
    made = edit.statements(f"if not {torch}.compiler.is_compiling():\n    pass\n")[0]
    assert isinstance(made, cst.If)
    bare = line.with_changes(leading_lines=())
    edit.replace_statement(line, [made.with_changes(body=made.body.with_changes(body=[bare]))])
    return Patch(edit.files(), states=f"`{found[0]}` is not called while the code runs compiled.")


FIX = Fix(
    id="housekeeping-while-eager",
    title="clean up in eager mode only",
    rules=frozenset({"outside-call"}),
    order=56,
    kind="source",
    why="The call changes no value that the program computes. `torch.compiler.is_compiling()` "
    "is true while Dynamo traces, so the call is not in the graph. Eager runs are "
    "unchanged.",
    propose=_propose,
    observable=True,
)
