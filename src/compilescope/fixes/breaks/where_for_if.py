"""Both sides of an `if` on a tensor are computed, and `torch.where` picks."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.breaks._branching import RULES, branch_of, replace_branch, torch_name, under
from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import NotMeant, Patch
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.effects import Effect
from compilescope.fixes.source.predication import Predication
from compilescope.fixes.source.truth import read_test
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    whole = branch_of(subject)
    truth = read_test(subject, whole.test)
    edit = Edit(subject.module)
    work = Predication(subject, subject.function, whole, torch_name(subject, edit))
    inside = _written(edit, work.effects(truth))
    if not inside:
        raise NotMeant("neither side does anything")
    elsewise = _written(edit, work.branch(whole.orelse)) if truth.static else []
    replace_branch(edit, whole, under(edit, truth, inside, whole, elsewise))
    return Patch(edit.files())


def _written(edit: Edit, effects: list[Effect]) -> list[cst.BaseStatement]:
    return [made for effect in effects for made in edit.statements(effect.line())]


FIX = Fix(
    id="where-for-if",
    title="use torch.where instead of the if",
    rules=RULES,
    order=40,
    kind="source",
    why="Both sides only compute values, so computing both and selecting one with "
    "`torch.where` gives the same result. Tensors that were changed in place still are.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def f(x):
    y = x.sin()
    # Which way?
    if y.sum() > 0:
        y = y * 2  # double
    else:
        y = y - 1
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    y = x.sin()
    # Which way?
    # double
    y = torch.where(y.sum() > 0, y * 2, y - 1)
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import torch as th


class Norm(th.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", th.zeros(3))

    def forward(self, x):
        if self.training and not th.isfinite(x).all():
            x = th.nan_to_num(x)
            self.seen.mul_(0.5).add_(x)
        return x + self.seen


th.compile(Norm(), backend="eager")(th.ones(3))
""",
            good="""import torch as th


class Norm(th.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", th.zeros(3))

    def forward(self, x):
        if self.training:
            taken = ~th.isfinite(x).all()
            x = th.where(taken, th.nan_to_num(x), x)
            self.seen.copy_(th.where(taken, self.seen.mul(0.5).add(x), self.seen))
        return x + self.seen


th.compile(Norm(), backend="eager")(th.ones(3))
""",
            note="What Dynamo can guard on stays an `if`; a buffer is changed in place as before.",
        ),
        FixExample(
            bad="""import torch


def f(x, top):
    size = (
        x.norm()
    )
    if size > 10: x = x * 0.5
    elif 1 < size <= 10:
        x = x - 1; top += 1
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.zeros(3))
""",
            good="""import torch


def f(x, top):
    size = (
        x.norm()
    )
    taken = size > 10
    taken_2 = (1 < size) & (size <= 10)
    x = torch.where(taken, x * 0.5, torch.where(taken_2, x - 1, x))
    top.copy_(torch.where(taken, top, torch.where(taken_2, top + 1, top)))
    return x * 2


torch.compile(f, backend="eager")(torch.ones(3), torch.zeros(3))
""",
            note="Who called sees that `top` changes, so it is changed in place here too.",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def f(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x * 0.5
    return y + y


torch.compile(f, backend="eager")(torch.ones(3, dtype=torch.int64))
""",
            because="one side is int64, the other float32",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    if x.sum() > 0:
        print("positive")
        x = x * 2
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="calls print",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    y = x
    if x.min() > 0:
        y = x.log()
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="gradient of `x.log\\(\\)` may be NaN",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    if x.sum() > 0:
        kind = "up"
    else:
        kind = "down"
    return x * len(kind)


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="is a Python value",
        ),
    ),
)
