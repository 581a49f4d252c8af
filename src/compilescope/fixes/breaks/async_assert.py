"""A check of a tensor that raises, made part of the graph: it still stops the program."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.breaks._branching import RULES, replace_branch, torch_name
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.checks import Check, read_checks
from compilescope.fixes.source.comments import with_comments
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.snippets import spread
from compilescope.fixes.source.truth import Truth
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    module = subject.module
    statement = _statement(subject)
    for above in module.ancestors(statement):
        if isinstance(above, (cst.Try, cst.TryStar)):
            raise Refused("the check is inside a `try`, which would no longer see it raise")
        if isinstance(above, cst.FunctionDef):
            break
    checks = list(read_checks(subject, statement))
    edit = Edit(module)
    torch = torch_name(subject, edit)
    made = [new for check in checks for new in edit.statements(_written(check, torch))]
    if isinstance(statement, cst.If):
        replace_branch(edit, statement, made)
    else:
        edit.replace_statement(statement, with_comments(module, statement, made))
    states = _states(subject, checks)
    allows = frozenset({"exception-type"} if states else ())
    return Patch(edit.files(), states=states, allows=allows)  # type: ignore[arg-type]


def _statement(subject: Subject) -> cst.If | cst.SimpleStatementLine:
    found = subject.statement
    if isinstance(found, cst.SimpleStatementLine) and len(found.body) == 1:
        return found
    if isinstance(found, cst.If):
        return found
    raise NotMeant("the check shares its line with other statements")


def _written(check: Check, torch: str) -> str:
    truth = check.truth
    holds = _negated(truth) if check.raises else truth.tensor
    line = f"{torch}._assert_async({holds}, {check.message.code})"
    if not truth.static:
        return line if "\n" in line else spread(line, 0)
    if check.raises and truth.joined_by == "and":
        return f"if {truth.static}:\n    {line}"
    if check.raises:
        return f"if {truth.static}:\n    {check.original}\n{line}"
    if truth.joined_by == "and":
        return f"assert {truth.static}{check.original}\n{line}"
    return f"if not ({truth.static}):\n    {line}"


def _negated(truth: Truth) -> str:
    """`not not x` is `x`."""
    plain = truth.tensor[1:]
    return plain if truth.tensor.startswith("~") and truth.atomic else truth.negated


def _states(subject: Subject, checks: list[Check]) -> str:
    words = []
    others = sorted({check.error for check in checks} - {"RuntimeError"})
    if others:
        words.append(f"the check raises RuntimeError instead of {' or '.join(others)}")
    lost = [f"`{text}`" for check in checks for text in check.message.left_out]
    if lost:
        words.append(f"its message names {' and '.join(lost)} without the value")
    here = subject.program.facts.seen.get(subject.file, {}).get(subject.line, {})
    devices = {fact.device.split(":")[0] for seen in here.values() for fact in seen}
    if devices - {"", "cpu", "meta"}:
        words.append("on a GPU it stops the program after this line and cannot be caught")
    joined = ", and ".join(words)
    return f"{joined[0].upper()}{joined[1:]}." if joined else ""


FIX = Fix(
    id="async-assert",
    title="make the check part of the graph",
    rules=RULES | {"validation-guard"},
    order=45,
    kind="source",
    why="`torch._assert_async` is an operator: Dynamo traces it, every backend keeps it if it "
    "has a message, and it raises RuntimeError with that message once the values are "
    "computed.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def f(x):
    y = x * 2
    # Only what is positive.
    if (y < 0).any():
        raise ValueError("negative")  # tell them
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    y = x * 2
    # Only what is positive.
    # tell them
    torch._assert_async(~(y < 0).any(), "negative")
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import torch


class Net(torch.nn.Module):
    strict = True

    def forward(self, x):
        if self.training and not torch.isfinite(x).all(): raise RuntimeError(f"bad {tuple(x.shape)}")
        return x + 1


torch.compile(Net(), backend="eager")(torch.ones(3))
""",
            good="""import torch


class Net(torch.nn.Module):
    strict = True

    def forward(self, x):
        if self.training:
            torch._assert_async(torch.isfinite(x).all(), f"bad {tuple(x.shape)}")
        return x + 1


torch.compile(Net(), backend="eager")(torch.ones(3))
""",
            note="What Dynamo can guard on stays an `if`.",
        ),
        FixExample(
            bad="""from torch import compile, ones


def f(x):
    assert x.ndim == 1 and x.abs().max() < 4, f"up to 4, not {x.max()}"
    return x + 1


compile(f, backend="eager")(ones(3))
""",
            good="""from torch import compile, ones
import torch


def f(x):
    assert x.ndim == 1, f"up to 4, not {x.max()}"
    torch._assert_async(x.abs().max() < 4, "up to 4, not x.max()")
    return x + 1


compile(f, backend="eager")(ones(3))
""",
            note="A message in the graph is a constant: it names what it cannot show.",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    if (x < 0).any():
        raise ValueError("negative")
    return x + 1


try:
    torch.compile(f, backend="eager")(torch.ones(3))
except ValueError:
    pass
""",
            because="ValueError is caught at program.py:12",
        ),
    ),
)
