"""Output that stays for eager runs, and is silent while the code is compiled."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NeedsRun, Patch
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.outputs import output_call, output_of
from compilescope.fixes.subject import Subject

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
    order=150,
    kind="source",
    why="`torch.compiler.is_compiling()` is true while Dynamo traces, so the call is not in "
    "the graph. Eager runs print as before.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def f(x):
    y = x + 1
    # Where are we?
    print("step", y)  # every step
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    y = x + 1
    # Where are we?
    if not torch.compiler.is_compiling():
        print("step", y)  # every step
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import torch
from torch import nn

VERBOSE = True


class Net(nn.Module):
    def forward(self, x):
        if VERBOSE: print("mean", x.mean().item())
        return x * 2


torch.compile(Net(), backend="eager")(torch.ones(3))
""",
            good="""import torch
from torch import nn

VERBOSE = True


class Net(nn.Module):
    def forward(self, x):
        if VERBOSE: torch.compiler.is_compiling() or print("mean", x.mean().item())
        return x * 2


torch.compile(Net(), backend="eager")(torch.ones(3))
""",
            note="The break is `.item()`, which only the print needs.",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    y = x + 1
    done = print("step") or y
    return done * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="part of a larger statement",
        ),
        RefusalExample(
            program="""import torch


def print(*values):
    return values[0].max().item()


def f(x):
    print(x)
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="not part of a print",
        ),
    ),
)
