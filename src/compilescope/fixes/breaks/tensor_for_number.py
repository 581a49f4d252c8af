"""A number that is only used in arithmetic with tensors stays a tensor."""

from __future__ import annotations

from compilescope.fixes.fix import Fix, FixExample, RefusalExample
from compilescope.fixes.patch import Patch
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.extraction import as_tensor, extraction_of, extractions_beside
from compilescope.fixes.source.scalars import Uses
from compilescope.fixes.subject import Subject


def _propose(subject: Subject) -> Patch:
    first = extraction_of(subject)
    edit = Edit(subject.module)
    for found in (first, *extractions_beside(subject, first)):
        Uses(subject, tensor=found.tensor).follow(found.node)
        edit.replace(found.node, edit.expression(as_tensor(subject, found.tensor)))
    return Patch(edit.files())


FIX = Fix(
    id="tensor-for-number",
    title="use the tensor itself instead of its number",
    rules=frozenset({"scalar-extraction", "GB0124", "GB0033"}),
    order=40,
    kind="source",
    why="In arithmetic with other tensors, a zero-dimensional tensor acts like a number, also "
    "for the result's dtype. `detach` keeps it out of the gradient, as the number was, and "
    "a copy protects it from later in-place changes.",
    propose=_propose,
    examples=(
        FixExample(
            bad="""import torch


def f(x):
    largest = x.abs().max().item()  # of all
    return x / largest


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    largest = x.abs().max().detach()  # of all
    return x / largest


torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        FixExample(
            bad="""import torch


def f(x):
    span = x.max().item() - x.min().item()
    return x * span


torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch


def f(x):
    span = x.max().detach() - x.min().detach()
    return x * span


torch.compile(f, backend="eager")(torch.ones(3))
""",
            note="All of a line at once: Dynamo would only stop at the next one.",
        ),
        FixExample(
            bad="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        y = (x * 2 - float(self.scale)).relu()
        self.scale += 1
        return y


torch.compile(Net(), backend="eager")(torch.ones(3))
""",
            good="""import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        y = (x * 2 - self.scale.detach().clone()).relu()
        self.scale += 1
        return y


torch.compile(Net(), backend="eager")(torch.ones(3))
""",
            note="The number was that of before the change.",
        ),
    ),
    refusals=(
        RefusalExample(
            program="""import torch


def weigh(counts, weight):
    return counts * weight.item()


weigh = torch.compile(weigh, backend="eager")
weigh(torch.tensor([1, 2, 3]), torch.tensor(0.1, dtype=torch.float64))
""",
            because="would make the result float64, not float32",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    largest = x.max().item()
    if largest > 2:
        x = x / largest
    return x


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="Python uses the result",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    return x * (1.0 / x.sum().item())


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="if the number is zero",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    total = x.sum().item()
    return x * 2, total


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="Python number is needed",
        ),
        RefusalExample(
            program="""import torch


def f(x):
    return x * int(x.sum())


torch.compile(f, backend="eager")(torch.ones(3))
""",
            because="NaN",
        ),
    ),
)
