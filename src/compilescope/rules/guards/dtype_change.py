"""A tensor has a different dtype."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, of_a_module, shown, wrapper_note

_SUFFIX = ".dtype"


def _applies(miss: Miss) -> bool:
    return miss.cause.subject.endswith(_SUFFIX) and miss.cause.kind == "TENSOR_MATCH"


def _tensor(miss: Miss) -> str:
    return shown(miss.cause.subject.removesuffix(_SUFFIX))


def _why(miss: Miss) -> str:
    return (
        f"`{_tensor(miss)}` was {miss.cause.expected} when `{called(miss)}` was compiled and is "
        f"{miss.cause.actual} now. A graph is specific to the dtypes of its "
        f"inputs.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    tensor, function = _tensor(miss), called(miss)
    if of_a_module(miss.cause.subject):
        return [
            source(
                f"Convert the module to its dtype before the first call of `{function}`, not "
                "between calls."
            ),
            leave(miss, "dtype"),
        ]
    return [
        judgement(
            f"If one dtype is enough, settle on it where `{tensor}` is created (NumPy gives "
            "float64, a list of Python ints int64), though the results may change. If "
            f"`{function}` serves both, two compilations are right."
        ),
    ]


RULE = GuardRule(
    id="dtype-change",
    order=150,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3))
f(torch.ones(3, dtype=torch.float64))
""",
        ),
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self):
        return self.weight * 2

net = Net()
compiled = torch.compile(net, backend="eager")
compiled()
net.double()
compiled()
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self):
        return self.weight * 2

net = Net().double()
compiled = torch.compile(net, backend="eager")
compiled()
compiled()
""",
            changes="the first call computes in float64 too",
        ),
    ),
)
