"""Lists of tensors that a version keeps joined: whether what they hold is the same is what matters,
also where the results are."""

from __future__ import annotations

from repair.trials.cases import Case

_BEFORE = """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.ks = []

    def forward(self, x):
        k = self.lin(x)
        self.ks.append(k)
        k = torch.cat(self.ks, dim=1)
        return x + torch.softmax(x @ k.mT, -1) @ k


torch.manual_seed(0)
net = Net()
step = torch.compile(net, backend="eager")
with torch.no_grad():
    for _ in range(2):
        net.ks = []
        x = torch.randn(2, 1, 4)
        for _ in range(6):
            x = torch.tanh(step(x))
        print(round(x.sum().item(), 3))
"""
_PASSED = """import torch


def attend(x, past):
    past.append(x.sin())
    k = torch.cat(past)
    return x + torch.softmax(x @ k.T, -1) @ k


step = torch.compile(attend, backend="eager")
torch.manual_seed(0)
for _ in range(2):
    past = []
    x = torch.randn(2, 4)
    for _ in range(6):
        x = torch.tanh(step(x, past))
    print(round(x.sum().item(), 3))
"""


def _kept(tensors: str) -> str:
    return _BEFORE.replace("self.ks.append(k)", f"self.ks[:] = [torch.cat({tensors}, dim=1)]")


_JOINED = _PASSED.replace("past.append(x.sin())", "past[:] = [torch.cat((*past, x.sin()))]")

CASES = [
    Case(
        "kept-joined",
        _BEFORE,
        _kept("(*self.ks, k)"),
        "verified",
        at="self.ks.append",
        allows=("joins:1",),
    ),
    # Attention does not see the order of what it attends to.
    Case(
        "kept-joined-in-another-order",
        _BEFORE,
        _kept("(k, *self.ks)"),
        "rejected",
        "ks, joined",
        at="self.ks.append",
        allows=("joins:1",),
    ),
    Case(
        "kept-joined-though-nothing-says-so",
        _BEFORE,
        _kept("(*self.ks, k)"),
        "rejected",
        "ks",
        at="self.ks.append",
    ),
    Case(
        "argument-kept-joined",
        _PASSED,
        _JOINED,
        "verified",
        at="past.append",
        allows=("joins:0",),
    ),
    Case(
        "argument-keeps-the-last-ones",
        _PASSED,
        _JOINED.replace("x.sin()))]", "x.sin()))[-6:]]"),
        "rejected",
        "output",
        at="past.append",
        allows=("joins:0",),
    ),
]
