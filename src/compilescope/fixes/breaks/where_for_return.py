"""Two ways to return, by a tensor: both values are computed, and `torch.where` picks."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.breaks._branching import (
    RULES,
    branch_of,
    replace_branch,
    torch_name,
    under,
)
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch, Refused
from compilescope.fixes.source.comments import with_comments
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.picking import ReturnedValue
from compilescope.fixes.source.returning import Side, read_returning, returns_somewhere
from compilescope.fixes.source.truth import read_test
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    module, branch = subject.module, branch_of(subject)
    if not returns_somewhere(module, branch):
        raise NotMeant("neither side returns")
    found = read_returning(module, branch)
    truth = read_test(subject, branch.test)
    edit = Edit(module)
    work = ReturnedValue(subject, torch_name(subject, edit))
    before = list(found.rest[:-1])
    test, head = truth.tensor, ""
    if before:
        if truth.static:
            raise Refused(f"`{truth.static}` in its condition is not a tensor")
        test = module.fresh_name("leaves")
        head = f"{test} = {truth.tensor}\n"
    for side in (found.then, found.other):
        if isinstance(side, Side):
            work.check(side)
    early = work.kept(found, before)
    if early is not None:
        head += f"{early} = {module.code(found.then.value)}\n"
    value = work.picked(test, found, early)
    if value.count(test) > 1 and not before:
        test = module.fresh_name("taken")
        value = f"{work.picked(test, found, early)}"
        returned = edit.statements(f"{test} = {truth.tensor}\nreturn {value}")
    else:
        returned = edit.statements(f"return {value}")
    if before:
        replace_branch(edit, branch, edit.statements(head))
        edit.replace_statement(found.rest[-1], with_comments(module, found.rest[-1], returned))
        return Patch(edit.files())
    if found.rest and not truth.static:
        lines = [each for each in found.rest[-1].leading_lines if each.comment]  # type: ignore[attr-defined]
        returned[0] = returned[0].with_changes(leading_lines=lines)
    elsewise = found.rest if found.rest else [cst.SimpleStatementLine([cst.Pass()])]
    made = under(edit, truth, returned, branch, [] if found.rest else elsewise)
    replace_branch(edit, branch, made)
    if found.rest and (not truth.static or truth.joined_by == "or"):
        edit.remove_statement(found.rest[-1])
    return Patch(edit.files())


FIX = Fix(
    id="where-for-return",
    title="return one torch.where instead of two branches",
    rules=RULES,
    order=43,
    kind="source",
    why="Both branches only compute values, so computing both and returning one with "
    "`torch.where` gives the same result.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def f(x):
    if x.sum() > 0:
        # Enough.
        return x * 2
    # Too little.
    return x - 1


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    # Enough.
    # Too little.
    return torch.where(x.sum() > 0, x * 2, x - 1)


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import torch


def f(x, y):
    if not y.any():
        return x * 0.5
    x = x + y
    z = x.sin()
    return z * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3))
""",
            good="""import torch


def f(x, y):
    leaves = ~y.any()
    early = x * 0.5
    x = x + y
    z = x.sin()
    return torch.where(leaves, early, z * 2)


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3))
""",
            note="What the early value is made of changes later, so it is kept.",
        ),
        FixExample(
            bad="""import torch


def f(x):
    if x.max() > 3: return x * 2, x
    elif x.min() < 0:
        return -x, x
    else:
        return x + 1, x


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    return torch.where(x.max() > 3, x * 2, torch.where(x.min() < 0, -x, x + 1)), x


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    if x.sum() > 0:
        return x.sum(0, keepdim=True)
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3, 2))
""",
            because="the same shape",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    for scale in (1.0, 2.0, 3.0):
        if (x * scale).sum() > 4:
            return x * scale
    return x


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="from inside a loop",
        ),
        RefusalExample(
            program="""import torch


def f(x, seen):
    if x.sum() > 4:
        return x * 2
    seen.append(1)
    return x


torch.compile(f, backend="eager")(torch.ones(3), [])
""",
            because="calls seen.append",
        ),
    ),
)
