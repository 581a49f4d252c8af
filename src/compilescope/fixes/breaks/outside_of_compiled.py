"""What Dynamo cannot trace stays in the function; the work moves into one of its own beside it."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.bindings import statements_of
from compilescope.fixes.source.cuts import split_around
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.frames import check_root, stays_outside
from compilescope.fixes.source.splitting import Shell
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    check_root(subject)
    try:
        return _outside(subject, all_sites=True)
    except Refused as reason:
        try:
            # What else Dynamo stops at may be another fix's matter.
            return _outside(subject, all_sites=False)
        except Refused:
            raise reason from None


def _outside(subject: Subject, *, all_sites: bool) -> Patch:
    module, function = subject.module, subject.function
    outside = stays_outside(subject, all_sites=all_sites)
    split = split_around(module, statements_of(function), outside)
    edit = Edit(module)
    Shell(edit, function, split).write()
    return Patch(edit.files())


FIX = Fix(
    id="outside-of-compiled",
    title="keep the call outside and compile the rest separately",
    rules=frozenset(
        {
            "backward-inside",
            "outside-call",
            "file-access",
            "GB0123",
            "GB0125",
            "GB0206",
            "GB8985",
            "GB0264",
            "GB0117",
            "GB0228",
            "GB4198",
            "GB0179",
        }
    ),
    order=80,
    kind="source",
    why="The function does the same in the same order. Dynamo skips its own frame (not its "
    "callees), and everything that can be compiled is in one function that it calls.",
    propose=_propose,
    examples=(
        FixExample(
            bad='''import torch

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


# One step of training.
@torch.compile(backend="eager")
def step(x, y):
    """Gives the loss."""
    optimizer.zero_grad()
    # The part that counts.
    out = model(x)
    loss = ((out - y) ** 2).mean()
    loss.backward()  # gradients
    return loss


step(torch.ones(2, 3), torch.zeros(2, 3))
''',
            good='''import torch

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def _step_compiled(x, y):
    # The part that counts.
    out = model(x)
    loss = ((out - y) ** 2).mean()
    return loss


# One step of training.
@torch.compile(backend="eager")
@torch._dynamo.decorators.skip
def step(x, y):
    """Gives the loss."""
    optimizer.zero_grad()
    loss = _step_compiled(x, y)
    loss.backward()  # gradients
    return loss


step(torch.ones(2, 3), torch.zeros(2, 3))
''',
        ),
        FixExample(
            bad="""import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = None

    def forward(self, x):
        if self.weight is None:
            self.weight = torch.nn.Parameter(torch.ones(x.shape[-1]))

        y = x * self.weight
        return y.relu()


torch.compile(Scale(), backend="eager")(torch.ones(3))
""",
            good="""import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = None

    def _forward_compiled(self, x):
        y = x * self.weight
        return y.relu()

    @torch.compiler.disable(recursive=False)
    def forward(self, x):
        if self.weight is None:
            self.weight = torch.nn.Parameter(torch.ones(x.shape[-1]))
        return self._forward_compiled(x)


torch.compile(Scale(), backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import torch


class Trainer:
    def __init__(self):
        self.layer = torch.nn.Linear(3, 1)

    @torch.compile(backend="eager")
    def step(self, x):
        loss = self.layer(x).square().mean()
        loss.backward()
        return loss


Trainer().step(torch.ones(2, 3))
""",
            good="""import torch


class Trainer:
    def __init__(self):
        self.layer = torch.nn.Linear(3, 1)

    def _step_compiled(self, x):
        loss = self.layer(x).square().mean()
        return loss

    @torch.compile(backend="eager")
    @torch._dynamo.decorators.skip
    def step(self, x):
        loss = self._step_compiled(x)
        loss.backward()
        return loss


Trainer().step(torch.ones(2, 3))
""",
            note="torch.compile as a decorator of a method looks through the public one",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import gc

import torch


def f(x):
    y = (x + 1).sin()
    gc.collect()
    z = y * 2
    return z.cos()


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="both before and after",
        ),
        RefusalExample(
            program="""import gc

import torch


def tidy(x):
    gc.collect()
    return x + 1


def f(x):
    return tidy(x) * 2


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="part of another function's graph",
        ),
    ),
)
