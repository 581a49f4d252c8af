"""Patches that hold for what one run shows: its weights, its mode, the numbers it was given."""

from __future__ import annotations

from repair.trials.cases import Case

_PRINT, _QUIET = '        print("step")\n', ""


def _model(body: str) -> str:
    return f"""import torch


class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3, bias=False)
        torch.nn.init.ones_(self.layer.weight)
        self.register_buffer("offset", torch.zeros(3))

    def forward(self, x):
{body}

m = torch.compile(M().eval().requires_grad_(False), backend="eager")
print(m(torch.ones(3)))
"""


_CHOICE = """import torch

HEADS = [torch.sin, torch.cos]


@torch.compile(backend="eager")
def f(x, n):
    return HEADS[n.item()](x)


{flag}print(f(torch.ones(3), torch.tensor(1)))
"""
_TURNS = """import torch


@torch.compile(backend="eager")
def f(x, n):
{line}    y = x + n
    turns = range(int(n[0]))
    for turn in turns:
        y = y.sin()
        if turn > 3:
            break
    return y


print(f(torch.ones(3), torch.tensor([2, 3, 2])))
"""

CASES = [
    Case(
        "the-weights-of-one-moment",
        _model(f"{_PRINT}        return self.layer(x) + 1\n"),
        _model("        return x.sum().expand(3) + 1\n"),
        "rejected",
        "other weights and buffers",
        allows=("drops-output",),
    ),
    Case(
        "the-buffers-of-one-moment",
        _model(f"{_PRINT}        return self.layer(x) + self.offset\n"),
        _model("        return self.layer(x)\n"),
        "rejected",
        "other weights and buffers",
        allows=("drops-output",),
    ),
    Case(
        "the-mode-of-one-moment",
        _model(f"{_PRINT}        return self.layer(x) * (3 if self.training else 2)\n"),
        _model("        return self.layer(x) * 2\n"),
        "rejected",
        "`training` the other way",
        allows=("drops-output",),
    ),
    Case(
        "any-weights-and-any-mode",
        _model(f"{_PRINT}        y = self.layer(x)\n        return y if self.training else -y\n"),
        _model("        y = self.layer(x)\n        return y if self.training else -y\n"),
        "verified",
        allows=("drops-output",),
    ),
    Case(
        "a-graph-for-one-number",
        _CHOICE.format(flag=""),
        _CHOICE.format(flag="torch._dynamo.config.capture_scalar_outputs = True\n"),
        "rejected",
        "one value alone",
        at="item",
    ),
    Case(
        "turns-by-data",
        _TURNS.format(line='    print("step")\n'),
        _TURNS.format(line=""),
        "verified",
        at="print",
        allows=("drops-output",),
    ),
]
