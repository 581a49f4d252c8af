"""Output that stays for eager runs, and is silent while the code is compiled."""

from __future__ import annotations

from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.statements.outputs import output_call, output_of
from compilescope.fixes.subject import Subject
from compilescope.source.refusals import NeedsRun
from compilescope.source.syntax.edit import Edit
from compilescope.source.trees import cst

_READERS = ("record=True", "logging.Handler", "redirect_stdout", "redirect_stderr", "assertLogs")
_DONE = {"print": "printed", "log": "logged", "warn": "warned of", "progress": "shown"}


def _propose(subject: Subject) -> Patch:
    module, line = subject.module, subject.statement
    call = output_call(subject)
    if not subject.program.facts.seen and _is_counted(subject):
        raise NeedsRun("the program reads its own output, so something may be missing")
    edit = Edit(module)
    torch = edit.module_name("torch")
    lone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    if lone and isinstance(module.parent(line), (cst.IndentedBlock, cst.Module)):
        made = edit.statements(f"if not {torch}.compiler.is_compiling():\n    pass\n")[0]
        assert isinstance(made, cst.If)
        bare = line.with_changes(leading_lines=())
        edit.replace_statement(line, [made.with_deep_changes(made.body, body=[bare])])
    else:
        # `if verbose: print(x)` and `a(); print(x)` have no line of their own.
        guarded = edit.expression(f"{torch}.compiler.is_compiling() or f()")
        assert isinstance(guarded, cst.BooleanOperation)
        edit.replace(call, guarded.with_changes(right=call))
    done = _DONE[output_of(module, call) or "log"]
    states = f"Nothing is {done} here while the code runs compiled."
    return Patch(edit.files(), states=states, allows=frozenset({"drops-output"}))


def _is_counted(subject: Subject) -> bool:
    """The program itself reads what it writes."""
    main = subject.program.main
    texts = [subject.module.text, *([subject.program.text(main)] if main else [])]
    return any(word in text for text in texts for word in _READERS)


FIX = Fix(
    id="print-while-eager",
    title="write the output in eager mode only",
    rules=frozenset({"print-call", "logging-call", "scalar-extraction", "outside-call", "GB0109"}),
    order=57,
    kind="source",
    why="`torch.compiler.is_compiling()` is true while Dynamo traces, so the call is not in "
    "the graph. Eager runs print as before.",
    propose=_propose,
    observable=True,
)
