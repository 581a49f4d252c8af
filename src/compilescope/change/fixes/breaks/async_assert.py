"""A check of a tensor that raises, made part of the graph: it still stops the program."""

from __future__ import annotations

from compilescope.change.fixes.branches.branch import (
    RULES,
    asked_by_name,
    replace_branch,
    torch_name,
)
from compilescope.change.fixes.branches.condition import Truth
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.checks import RaisingCheck, read_checks
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.comments import with_comments
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.snippets import spread
from compilescope.knowledge.source.trees import cst


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
    return Patch(edit.files(), states=states, allows=allows)


def _statement(subject: Subject) -> cst.If | cst.SimpleStatementLine:
    found = subject.statement
    if isinstance(found, cst.SimpleStatementLine) and len(found.body) == 1:
        return found
    if isinstance(found, cst.If):
        return found
    raise NotMeant("the check shares its line with other statements")


def _written(check: RaisingCheck, torch: str) -> str:
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


def _states(subject: Subject, checks: list[RaisingCheck]) -> str:
    words = []
    others = sorted({check.error for check in checks} - {"RuntimeError"})
    if others:
        words.append(
            f"the check raises RuntimeError instead of {' or '.join(others)}, when the graph runs it"
        )
    lost = [f"`{text}`" for check in checks for text in check.message.left_out]
    if lost:
        words.append(f"its message names {' and '.join(lost)} without the value")
    here = subject.program.facts.all_at(subject.file, subject.line)
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
    "computed. It has no public name.",
    propose=asked_by_name(_propose),
)
