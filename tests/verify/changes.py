"""Changes by hand to small programs, and what is to be said of each."""

from __future__ import annotations

from typing import NamedTuple

MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x, mask):
        h = torch.relu(self.lin(x))
        h = h.masked_fill(mask, 0.0)
        self.seen += 1
        return h.sum(dim=1)


def unused(x):
    return x + 1


net = Net()
step = torch.compile(net, backend="eager")
x = torch.randn(4, 8)
mask = torch.zeros(4, 8, dtype=torch.bool)
mask[0] = True
for _ in range(3):
    out = step(x, mask)
    out.sum().backward()
print("seen", net.seen.item())
"""
BREAKING = MODEL.replace(
    "        self.seen += 1\n", "        self.seen += 1\n        print('seen')\n"
)
PLAIN = """import sys


def total(values):
    found = 0
    for each in values:
        found += each
    return found


def parsed(text):
    try:
        return int(text)
    except ValueError:
        return 0


print(total([1, 2, 3]), parsed("4"))
sys.exit(total([]))
"""
SILENT = """import torch


@torch.compile(backend="eager")
def f(x):
    return x * 2


y = f(torch.ones(3))
z = y + 1
"""

BREAKS_BY_TURNS = """import torch


@torch.compile(backend="eager")
def f(x, breaks):
    if breaks:
        torch._dynamo.graph_break()
    return x * 2


with open(__file__ + ".runs", "a") as runs:
    runs.write("x")
    number = runs.tell()
print(f(torch.ones(3), number % 2 == 0).sum().item())
"""


class Change(NamedTuple):
    name: str
    before: str
    old: str
    new: str
    verdict: str
    words: str
    """In the reason, or in what is said of it."""
    quick: bool = False

    @property
    def after(self) -> str:
        assert self.old in self.before
        return self.before.replace(self.old, self.new)


CHANGES = [
    Change(
        "another-way-to-write-it",
        MODEL,
        "h.masked_fill(mask, 0.0)",
        "torch.where(mask, 0.0, h)",
        "verified",
        "Net",
    ),
    Change("no-print", BREAKING, "        print('seen')\n", "", "changed", "'seen'"),
    Change(
        "print-kept-outside",
        BREAKING,
        "print('seen')",
        "print('seen', flush=True)",
        "verified",
        "2 in compiled code",
    ),
    Change(
        "mask-dropped",
        MODEL,
        "h.masked_fill(mask, 0.0)",
        "h.masked_fill(mask, 0.0) + mask * 0.1",
        "changed",
        "output",
    ),
    Change(
        "mask-as-a-product",
        MODEL,
        "h.masked_fill(mask, 0.0)",
        "h * ~mask",
        "changed",
        "NaN",
    ),
    Change(
        "gradient-detached",
        MODEL,
        "torch.relu(self.lin(x))",
        "torch.relu(self.lin(x)).detach() + 0 * self.lin.bias",
        "changed",
        "grad",
    ),
    Change("dtype", MODEL, "h.sum(dim=1)", "h.sum(dim=1).double()", "changed", "float64"),
    Change(
        "state", MODEL, "self.seen += 1", "self.seen += 1 * (x.sum() < 1e30)", "changed", "seen"
    ),
    Change(
        "nan-hidden",
        MODEL,
        "torch.relu(self.lin(x))",
        "torch.relu(self.lin(x)).nan_to_num()",
        "changed",
        "finite on one side only",
    ),
    Change(
        "a-break",
        MODEL,
        "        return h.sum(dim=1)\n",
        "        torch._dynamo.graph_break()\n        return h.sum(dim=1)\n",
        "worse",
        "a new graph break at program.py:15",
    ),
    Change(
        "no-compile",
        MODEL,
        'torch.compile(net, backend="eager")',
        "net",
        "worse",
        "nothing is compiled",
    ),
    Change(
        "function-moved",
        MODEL,
        "        h = torch.relu(self.lin(x))\n",
        "        h = self.hidden(x)\n",
        "verified",
        "Net",
    ),
    Change(
        "nothing-of-it-runs",
        MODEL,
        "return x + 1",
        "return x + 2",
        "unknown",
        "runs none of the changed lines (program.py:19)",
    ),
    Change(
        "comments-alone",
        MODEL,
        "net = Net()",
        "net = Net()  # the model",
        "verified",
        "no changed statement",
    ),
    Change(
        "plain-refactored",
        PLAIN,
        "found += each",
        "found = found + each",
        "verified",
        "1 line of output",
        quick=True,
    ),
    Change(
        "plain-print",
        PLAIN,
        "print(total",
        "print(1 + total",
        "changed",
        "line 1 of the output was '6 4' and is now '7 4'",
    ),
    Change(
        "plain-exit", PLAIN, "sys.exit(total([]))", "sys.exit(total([2]))", "changed", "status 2"
    ),
    Change(
        "swallowed-exception",
        "raise ValueError('x')\n",
        "raise ValueError('x')",
        "pass",
        "changed",
        "exits with status 0",
    ),
    Change(
        "fails-in-both",
        "x = 1\nraise ValueError('x')\n",
        "x = 1",
        "x = 2",
        "unknown",
        "fails in both versions",
    ),
    Change(
        "unsteady",
        "import os\nx = 1\nprint(int.from_bytes(os.urandom(6), 'big') / 7)\n",
        "x = 1",
        "x = 2",
        "unknown",
        "something different each time",
    ),
    Change(
        "made-up-names",
        "import os\nx = 1\nprint(os.urandom(8).hex())\n",
        "x = 1",
        "x = 2",
        "unknown",
        "prints nothing to compare",
    ),
    Change("unseen-outside", SILENT, "z = y + 1", "z = y + 2", "unknown", "prints nothing"),
    Change(
        "crashes-where-breaks-vary",
        BREAKS_BY_TURNS,
        "import torch\n",
        "import torch\n\nraise SystemError('gone')\n",
        "changed",
        "it crashes: SystemError: gone",
        quick=True,
    ),
    Change(
        "neither-compiles",
        MODEL.replace(
            "        self.seen += 1\n", "        if h.sum() > 0:\n            h = h * 2\n"
        ).replace('backend="eager"', 'backend="eager", fullgraph=True'),
        "return h.sum(dim=1)",
        "found = h.sum(dim=1)\n        return found",
        "unknown",
        "fails in both versions",
    ),
    Change("syntax", PLAIN, "print(total", "print(total(", "changed", "SyntaxError"),
]
