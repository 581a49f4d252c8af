"""A tensor requires grad in one call and not in another."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, of_a_module, shown, wrapper_note

_SUFFIX = ".requires_grad"


def _applies(miss: Miss) -> bool:
    return miss.cause.subject.endswith(_SUFFIX) and miss.cause.kind == "TENSOR_MATCH"


def _tensor(miss: Miss) -> str:
    return shown(miss.cause.subject.removesuffix(_SUFFIX))


def _why(miss: Miss) -> str:
    was, now = (
        ("did not require", "requires")
        if miss.cause.actual == "True"
        else ("required", "does not require")
    )
    return (
        f"`{_tensor(miss)}` {was} grad when `{called(miss)}` was compiled and {now} it now. This "
        "decides whether the graph gets a backward, so each case has its own "
        f"graph.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    tensor, function = _tensor(miss), called(miss)
    if of_a_module(miss.cause.subject):
        return [
            source(
                f"Freeze or unfreeze `{tensor}` before the first call of `{function}`, if it stays "
                "that way."
            ),
            judgement(
                "Leave it for a schedule that unfreezes layer by layer: one compilation per stage "
                "is right."
            ),
        ]
    return [
        judgement(
            "Leave it if you need both: two compilations are right, and there won't be a third."
        ),
        source(
            f"Pass `{tensor}.detach()` in every call, if no gradient should flow through it (this "
            "makes no copy)."
        ),
    ]


RULE = GuardRule(
    id="requires-grad-change",
    order=160,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, state):
    return x + state

x = torch.ones(3, requires_grad=True)
state = torch.zeros(3)
for _ in range(3):
    state = f(x, state)
    print(state.tolist())
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, state):
    return x + state

x = torch.ones(3, requires_grad=True)
state = torch.zeros(3)
for _ in range(3):
    state = f(x, state.detach())
    print(state.tolist())
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
print(compiled().tolist())
net.weight.requires_grad_(False)
print(compiled().tolist())
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self):
        return self.weight * 2

net = Net()
compiled = torch.compile(net, backend="eager")
net.weight.requires_grad_(False)
print(compiled().tolist())
print(compiled().tolist())
""",
        ),
    ),
)
