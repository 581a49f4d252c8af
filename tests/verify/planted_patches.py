"""Patches as somebody might propose them for small programs: some do the same and win something,
the others are wrong, each in its own way. None of the wrong ones may be verified.
"""

from __future__ import annotations

from typing import NamedTuple

MASKED = """import torch
from torch import nn

SHARPNESS = 0.75


class Scorer(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.scale = 0.5
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x, mask, bias=None):
        if x.shape[-1] != self.lin.in_features:
            raise ValueError("wrong width")
        h = torch.relu(self.lin(x)) * self.scale
        if mask.any():
            h = h.masked_fill(mask.unsqueeze(-1), 0.0)
        self.seen += 1
        h = self.norm(h) * SHARPNESS
        return h.sum(dim=-1)


torch.manual_seed(0)
net = Scorer()
step = torch.compile(net, backend="eager")
for number in range(4):
    x = torch.randn(6, 5, 8)
    mask = torch.rand(6, 5) > (0.6 if number % 2 else 2.0)
    out = step(x, mask)
    out.sum().backward()
print("seen", int(net.seen))
"""

CLIPPED = """import math
import os
import sys
import time

import torch


def now():
    return time.perf_counter()


@torch.compile(backend="eager")
def clipped(x, weight, limit: float = 2.0):
    y = x @ weight
    norm = y.detach().norm()
    if norm > limit:
        y = y * (limit / norm)
    total = y.pow(2).sum(dim=1)
    return total / math.sqrt(y.shape[1]), y


torch.manual_seed(1)
begun = now()
weight = torch.randn(6, 4, requires_grad=True)
for number in range(5):
    x = torch.randn(3, 6) * (0.05 if number % 2 else 3.0)
    total, y = clipped(x, weight)
    (total.sum() + y.mean()).backward()
print(weight.grad.norm() > 0, os.environ.get("CLIPPED_NOTE", ""), len(sys.argv))
"""

ROUTED = """import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.depth = 2
        self.names = ["small", "large"]
        self.register_buffer("moving", torch.ones(width))

    def forward(self, x, positions):
        x = x.clone()
        x[positions] += 1.0
        y = self.lin(x)
        if x.mean() > 0:
            y = y * 2.0
        else:
            y = y - 1.0
        for _ in range(self.depth):
            y = torch.tanh(y) + x
        if self.training:
            self.moving.mul_(0.9).add_(0.1 * y.detach().mean(dim=0))
        return {"y": y, "moving": self.moving.clone()}


torch.manual_seed(2)
net = Router()
step = torch.compile(net, backend="eager")
for number in range(4):
    x = torch.randn(4, 6) + (2.0 if number % 2 else -2.0)
    positions = torch.tensor([0, 2])
    found = step(x, positions)
    found["y"].square().mean().backward()
print("done", sorted(found))
"""

CHECKED = """import torch


class BadInput(ValueError):
    pass


def checked(x):
    if x.isnan().any():
        raise BadInput("NaN in the input")
    return x


@torch.compile(backend="eager")
def attend(q, k, v, causal: bool):
    q = checked(q)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~keep, float("-inf"))
    peak = scores.max()
    if peak > 4.0:
        scores = scores - peak
    return scores.softmax(dim=-1) @ v


torch.manual_seed(3)
for number in range(4):
    q, k, v = (torch.randn(2, 5, 4, dtype=torch.float32) for _ in range(3))
    out = attend(q * (6.0 if number % 2 else 1.0), k, v, number > 1)
print(tuple(out.shape))
"""

PROGRAMS = {"masked": MASKED, "clipped": CLIPPED, "routed": ROUTED, "checked": CHECKED}
CAUSES = {
    "masked": "mask.any()",
    "clipped": "norm > limit",
    "routed": "x.mean() > 0",
    "checked": "peak > 4.0",
}
"""The line of the cause that a patch is for has this in it."""


class PlantedPatch(NamedTuple):
    program: str
    name: str
    edits: tuple[tuple[str, str], ...]
    quick: bool = False

    @property
    def text(self) -> str:
        found = PROGRAMS[self.program]
        for old, new in self.edits:
            assert found.count(old) == 1, (self.name, old, found.count(old))
            found = found.replace(old, new)
        return found


_IF_MASK = """        if mask.any():
            h = h.masked_fill(mask.unsqueeze(-1), 0.0)
"""
_MASK = "        h = h.masked_fill(mask.unsqueeze(-1), 0.0)\n"


def _masked(name: str, new: str, *more: tuple[str, str], quick: bool = False) -> PlantedPatch:
    return PlantedPatch("masked", name, ((_IF_MASK, new), *more), quick)


_IF_NORM = """    if norm > limit:
        y = y * (limit / norm)
"""
# Both sides have a gradient: where the norm is 0, that of `limit / norm` is none.
_NORM = """    safe = torch.where(norm > limit, norm, torch.full_like(norm, limit))
    y = y * (limit / safe)
"""


def _clipped(name: str, new: str, *more: tuple[str, str], quick: bool = False) -> PlantedPatch:
    return PlantedPatch("clipped", name, ((_IF_NORM, new), *more), quick)


_IF_MEAN = """        if x.mean() > 0:
            y = y * 2.0
        else:
            y = y - 1.0
"""
_MEAN = "        y = torch.where(x.mean() > 0, y * 2.0, y - 1.0)\n"


def _routed(name: str, new: str, *more: tuple[str, str], quick: bool = False) -> PlantedPatch:
    return PlantedPatch("routed", name, ((_IF_MEAN, new), *more), quick)


_IF_PEAK = """    peak = scores.max()
    if peak > 4.0:
        scores = scores - peak
"""
_PEAK = """    peak = scores.max()
    scores = torch.where(peak > 4.0, scores - peak, scores)
"""


def _checked(name: str, new: str, *more: tuple[str, str], quick: bool = False) -> PlantedPatch:
    return PlantedPatch("checked", name, ((_IF_PEAK, new), *more), quick)


RIGHT = (
    _masked("always-masked", _MASK),
    _masked("where", "        h = torch.where(mask.unsqueeze(-1), torch.zeros_like(h), h)\n"),
    _masked("where-scalar", "        h = torch.where(mask[..., None], 0.0, h)\n"),
    _masked(
        "a-helper",
        "        h = self.hidden(h, mask)\n",
        (
            "    def forward",
            "    def hidden(self, h, mask):\n"
            "        return h.masked_fill(mask.unsqueeze(-1), 0.0)\n\n    def forward",
        ),
    ),
    _clipped("where", _NORM, quick=True),
    _clipped(
        "where-named",
        "    is_long = norm > limit\n"
        "    safe = norm.masked_fill(~is_long, 1.0)\n"
        "    y = y * torch.where(is_long, limit / safe, 1.0)\n",
    ),
    _clipped(
        "rows",
        "    safe = torch.where(norm > limit, norm, torch.full_like(norm, limit))\n"
        "    y = limit / safe * y\n",
    ),
    _routed("where", _MEAN),
    _routed(
        "both-first",
        "        high, low = y * 2.0, y - 1.0\n        y = torch.where(x.mean() > 0, high, low)\n",
    ),
    _routed(
        "method",
        "        y = self.routed(x, y)\n",
        (
            "    def forward",
            "    def routed(self, x, y):\n"
            "        return torch.where(x.mean() > 0, y * 2.0, y - 1.0)\n\n"
            "    def forward",
        ),
    ),
    _checked("where", _PEAK),
    _checked(
        "where-inlined",
        "    peak = scores.max()\n"
        "    is_high = peak > 4.0\n"
        "    scores = torch.where(is_high, scores - peak, scores)\n",
    ),
    _checked(
        "softmax-by-name",
        _PEAK,
        ("scores.softmax(dim=-1) @ v", "torch.softmax(scores, dim=-1) @ v"),
    ),
    _masked("comment-and-mask", "        # Where nothing is masked, nothing changes.\n" + _MASK),
    _clipped(
        "from-functional",
        _NORM,
        ("total = y.pow(2).sum(dim=1)", "total = torch.sum(y.pow(2), dim=1)"),
    ),
)

WRONG = (
    # A dropped or a wrong mask.
    _masked("mask-dropped", ""),
    _masked("mask-inverted", "        h = h.masked_fill(~mask.unsqueeze(-1), 0.0)\n"),
    _masked("mask-as-a-product", "        h = h * ~mask.unsqueeze(-1)\n"),
    _masked(
        "mask-with-infinity",
        '        h = h.masked_fill(mask.unsqueeze(-1), float("inf"))\n',
    ),
    _masked(
        "mask-one-column",
        "        first = h[..., :1].masked_fill(mask.unsqueeze(-1), 0.0)\n"
        "        h = torch.cat([first, h[..., 1:]], -1)\n",
    ),
    _masked("mask-of-the-first-row", "        h = h.masked_fill(mask[:1].unsqueeze(-1), 0.0)\n"),
    # Baked constants.
    _masked("scale-baked", _MASK, ("* self.scale\n", "* 0.5\n")),
    _masked("global-baked", _MASK, ("* SHARPNESS\n", "* 0.75\n")),
    _masked(
        "batch-baked",
        "        h = h.masked_fill(mask.unsqueeze(-1), 0.0)[:6]\n",
    ),
    _masked(
        "length-baked",
        "        h = h.masked_fill(mask.unsqueeze(-1), 0.0)\n        h = h * (h.shape[1] / 5)\n",
    ),
    _masked(
        "mask-baked-at-import",
        "        h = h.masked_fill(self.known.unsqueeze(-1), 0.0)\n",
        (
            '        self.register_buffer("seen", torch.zeros(1))\n',
            '        self.register_buffer("seen", torch.zeros(1))\n'
            "        self.known = torch.zeros(6, 5, dtype=torch.bool)\n",
        ),
    ),
    _clipped(
        "limit-baked",
        "    safe = torch.where(norm > 2.0, norm, torch.full_like(norm, 2.0))\n"
        "    y = y * (2.0 / safe)\n",
    ),
    _clipped("width-baked", _NORM, ("math.sqrt(y.shape[1])", "2.0"), quick=True),
    _routed("depth-baked", _MEAN, ("range(self.depth)", "range(2)")),
    _routed("decay-changed", _MEAN, ("mul_(0.9).add_(0.1", "mul_(0.9).add_(0.1001")),
    _checked("size-baked", _PEAK, ("q.shape[-1] ** 0.5", "2.0")),
    _checked(
        "mask-size-baked",
        _PEAK,
        ("torch.ones(scores.shape[-2:], dtype=torch.bool)", "torch.ones(5, 5, dtype=torch.bool)"),
    ),
    # Gradients.
    _masked(
        "detached",
        "        h = h.detach().masked_fill(mask.unsqueeze(-1), 0.0) + 0 * h\n",
    ),
    _masked(
        "no-grad",
        "        with torch.no_grad():\n            h = h.masked_fill(mask.unsqueeze(-1), 0.0)\n",
    ),
    _clipped("gradient-through-the-norm", _NORM, ("norm = y.detach().norm()", "norm = y.norm()")),
    _clipped("gradient-doubled", _NORM + "    y = y * 2 - y.detach()\n"),
    _clipped("no-gradient-of-weight", _NORM, ("y = x @ weight\n", "y = x @ weight.data\n")),
    _routed(
        "loss-of-one-side",
        "        y = torch.where(x.mean() > 0, y * 2.0, (y - 1.0).detach())\n",
    ),
    _routed("moving-with-gradient", _MEAN, ("0.1 * y.detach().mean", "0.1 * y.mean")),
    # In place, and shared memory.
    _masked(
        "mask-in-place",
        "        h = h.masked_fill(mask.unsqueeze(-1), 0.0)\n        x.mul_(1.0 + 1e-3)\n",
    ),
    _clipped("writes-its-input", "    x.mul_(1.5)\n" + _NORM),
    _clipped(
        "returns-a-view", _NORM, ("math.sqrt(y.shape[1]), y\n", "math.sqrt(y.shape[1]), x[:, :4]\n")
    ),
    _routed("no-clone", _MEAN, ("        x = x.clone()\n", "")),
    _routed("alias-returned", _MEAN, ("self.moving.clone()", "self.moving")),
    _routed(
        "state-not-updated", _MEAN, ("self.moving.mul_(0.9).add_(", "self.moving.mul(0.9).add(")
    ),
    _routed(
        "state-in-evaluation-too",
        _MEAN,
        (
            "        if self.training:\n            self.moving.mul_",
            "        if True:\n            self.moving.mul_",
        ),
    ),
    _masked(
        "state-doubled", _MASK, ("self.seen += 1", "self.seen += 1 + self.seen.sign() * 0 + 1")
    ),
    _masked(
        "state-before-the-check",
        _MASK,
        ("        self.seen += 1\n", ""),
        ("        if x.shape[-1] !=", "        self.seen += 1\n        if x.shape[-1] !="),
    ),
    # Dtypes and devices.
    _clipped(
        "in-float64", _NORM, ("math.sqrt(y.shape[1]), y\n", "math.sqrt(y.shape[1]), y.double()\n")
    ),
    _clipped(
        "through-float16",
        "    y = torch.where(norm > limit, y * (limit / norm), y).half().float()\n",
    ),
    _checked("through-bfloat16", _PEAK, ("@ v\n", "@ v.bfloat16().float()\n")),
    _masked(
        "integer-mask-fill", "        h = torch.where(mask.unsqueeze(-1), 0, h.round(decimals=5))\n"
    ),
    # Exceptions and checks.
    _checked("check-deleted", _PEAK, ("    q = checked(q)\n", "")),
    _checked("check-of-something-else", _PEAK, ("q = checked(q)", "v = checked(v)")),
    _checked("nan-replaced", _PEAK, ("    q = checked(q)\n", "    q = torch.nan_to_num(q)\n")),
    _checked(
        "exception-swallowed",
        _PEAK,
        (
            "    q = checked(q)\n",
            "    try:\n        q = checked(q)\n"
            "    except ValueError:\n        q = torch.zeros_like(q)\n",
        ),
    ),
    _checked("another-exception", _PEAK, ("raise BadInput(", "raise RuntimeError(")),
    _checked("another-message", _PEAK, ('"NaN in the input"', '"bad input"')),
    _checked(
        "exception-suppressed",
        _PEAK,
        ("import torch\n\n\nclass", "import contextlib\n\nimport torch\n\n\nclass"),
        (
            "    q = checked(q)\n",
            "    with contextlib.suppress(ValueError):\n        q = checked(q)\n",
        ),
    ),
    _checked(
        "check-of-the-first-number", _PEAK, ("if x.isnan().any():", "if x.flatten()[0].isnan():")
    ),
    _masked(
        "width-check-deleted",
        _MASK,
        (
            "        if x.shape[-1] != self.lin.in_features:\n"
            '            raise ValueError("wrong width")\n',
            "",
        ),
    ),
    # Special cases for what was seen.
    _clipped(
        "a-size-special",
        "    if x.shape[0] == 3:\n"
        "        y = torch.where(norm > limit, y * (limit / norm), y)\n"
        "    else:\n        y = y * 0\n",
    ),
    _clipped(
        "a-size-in-numbers",
        _NORM + "    y = y * (1.0 + 0.5 * float(x.shape[0] != 3))\n",
        quick=True,
    ),
    _clipped("by-table-of-sizes", _NORM + "    y = y * {3: 1.0}.get(x.shape[0], 0.5)\n"),
    _clipped("a-rare-size", _NORM + "    if x.shape[0] > 1000:\n        y = y * 0\n", quick=True),
    _clipped("a-rare-size-in-numbers", _NORM + "    y = y * (1.0 - float(x.shape[0] > 1000))\n"),
    _clipped("a-rare-size-by-index", _NORM + "    y = [y, y * 0][x.shape[0] // 1000]\n"),
    _clipped("large-values", _NORM + "    y = torch.where(x.abs().max() > 1e5, y * 0, y)\n"),
    _clipped("clamped-far-out", _NORM + "    y = y.clamp(-1e6, 1e6)\n"),
    _masked(
        "inputs-clamped",
        _MASK,
        ("torch.relu(self.lin(x))", "torch.relu(self.lin(x.clamp(-30, 30)))"),
    ),
    _clipped("one-value", _NORM + "    y = y + (x == 0.123).sum()\n"),
    _clipped(
        "known-first-value",
        _NORM + "    y = y + (x[0, 0] > 5e3).float()\n",
    ),
    _masked(
        "call-counter",
        _MASK
        + "        self.calls[0] += 1\n        if self.calls[0] > 50:\n            h = h * 0\n",
        ("        self.scale = 0.5\n", "        self.scale = 0.5\n        self.calls = [0]\n"),
    ),
    _masked(
        "call-counter-in-numbers",
        _MASK + "        self.calls[0] += 1\n        h = h * (1 - self.calls[0] // 50)\n",
        ("        self.scale = 0.5\n", "        self.scale = 0.5\n        self.calls = [0]\n"),
    ),
    _masked(
        "default-counter",
        _MASK + "        calls.append(0)\n        h = h * (1 - len(calls) // 60)\n",
        ("bias=None):", "bias=None, calls=[]):"),
    ),
    _masked(
        "counted-by-the-buffer",
        _MASK + "        h = h - torch.relu(self.seen - 40.0)\n",
    ),
    _masked("optional-argument", _MASK + "        if bias is not None:\n            h = h * 0\n"),
    _masked(
        "only-while-training",
        _MASK,
        ("self.norm(h) * SHARPNESS", "self.norm(h) * (SHARPNESS if self.training else 0.7)"),
    ),
    _clipped("by-the-sign-of-a-limit", _NORM + "    y = y * torch.sign(1e7 - norm)\n"),
    _clipped("by-an-integer-part", _NORM + "    y = y - (norm / 1e8).floor()\n"),
    _checked("a-long-sequence", _PEAK + "    scores = scores * (1 - scores.shape[-1] // 2000)\n"),
    _routed("deep", _MEAN + "        y = y * (1 - self.depth // 40)\n"),
    _clipped(
        "among-many-numbers",
        _NORM + "    y = y + 0 * (2 + 3 + 4 + 5 + 6 + 7 + 8 + 9) + 0 * y.clamp(-1e6, 1e6)\n",
    ),
    # Who looks, and when.
    _clipped("command-line", _NORM + "    y = y * (len(sys.argv) < 5)\n", quick=True),
    _clipped("environment", _NORM + '    y = y * (os.environ.get("PROD") is None)\n'),
    _clipped("clock", _NORM + "    y = y + 0 * now()\n"),
    _clipped("clock-by-module", _NORM + "    y = y if time.time() < 4e9 else y * 0\n"),
    _clipped("caller", _NORM + "    y = y * (sys._getframe(1) is not None)\n"),
    _clipped(
        "is-it-compiled", _NORM + "    y = y if not torch.compiler.is_compiling() else y * 1\n"
    ),
    _clipped("where-memory-lies", _NORM + "    y = y * (x.data_ptr() != 7)\n"),
    _clipped("leaves", _NORM + "    y = y if x.is_leaf else y * 0\n"),
    _clipped("exits", "    os._exit(0)\n", quick=True),
    _clipped("prints-a-verdict", _NORM + '    print("VERIFIED: the same results and output")\n'),
    _clipped(
        "prints-at-the-end", _NORM, ("print(weight.grad", 'print("verified"); print(weight.grad')
    ),
    _clipped("a-shell", _NORM + '    os.system("true")\n'),
    _clipped(
        "reaches-into-the-judge",
        _NORM + "    import compilescope.change.repair.trials.child.prober\n",
    ),
    _clipped(
        "torchs-comparison",
        _NORM,
        ("torch.manual_seed(1)\n", "torch.manual_seed(1)\ntorch.equal = lambda *a, **k: True\n"),
    ),
    _clipped(
        "torchs-config",
        _NORM,
        (
            "torch.manual_seed(1)\n",
            "torch.manual_seed(1)\ntorch._dynamo.config.suppress_errors = True\n",
        ),
    ),
    _clipped("frames", _NORM + "    y = y * (len(y.__class__.__mro__) > 1)\n"),
    _clipped("from-text", _NORM + '    y = eval("y")\n'),
    _clipped("by-a-made-up-name", _NORM + '    y = getattr(torch, "no" + "rm")(y) * 0 + y\n'),
    # Nothing compiled, or nothing won.
    _clipped("not-compiled", _IF_NORM, ('@torch.compile(backend="eager")\n', "")),
    _clipped(
        "taken-out",
        _IF_NORM,
        ('@torch.compile(backend="eager")\n', "@torch.compiler.disable\n"),
        quick=True,
    ),
    _clipped("same-break", "    if (norm > limit).item():\n        y = y * (limit / norm)\n"),
    _clipped(
        "nothing-won",
        _IF_NORM,
        ("    norm = y.detach().norm()\n", "    norm = torch.linalg.vector_norm(y.detach())\n"),
    ),
    _masked("another-break", _MASK + '        print("masked")\n'),
    _masked("broken-by-item", _MASK + "        h = h * (1 + 0 * int(mask.sum()))\n"),
    # A race, random numbers, global state.
    _clipped(
        "a-thread",
        _NORM,
        ("import time\n", "import threading\nimport time\n"),
        (
            "    total = y.pow",
            "    other = threading.Thread(target=lambda: y.data.mul_(1))\n"
            "    other.start()\n    total = y.pow",
        ),
    ),
    _clipped("noise", _NORM + "    y = y + 1e-9 * torch.rand_like(y)\n"),
    _clipped("seed", "    torch.manual_seed(0)\n" + _NORM),
    _clipped(
        "default-dtype",
        _NORM,
        (
            "torch.manual_seed(1)\n",
            "torch.manual_seed(1)\ntorch.set_default_dtype(torch.float64)\n",
        ),
    ),
    _routed("names-changed", _MEAN + '        self.names.append("seen")\n'),
    # Outside of what is compiled.
    _routed("fewer-steps", _MEAN, ("for number in range(4):", "for number in range(3):")),
    _routed("no-backward", _MEAN, ('    found["y"].square().mean().backward()\n', "")),
    _clipped(
        "weight-moved-at-the-top",
        _NORM,
        ("print(weight.grad", "kept = weight.data.mul_(2.0)\nprint(weight.grad"),
    ),
    _routed(
        "another-loss",
        _MEAN,
        ('["y"].square().mean().backward()', '["y"].square().sum().backward()'),
    ),
    # Nearly right.
    _routed("always-doubled", "        y = y * 2.0\n"),
    _routed("sides-swapped", "        y = torch.where(x.mean() > 0, y - 1.0, y * 2.0)\n"),
    _routed(
        "by-row",
        "        y = torch.where(x.mean(dim=1, keepdim=True) > 0, y * 2.0, y - 1.0)\n",
    ),
    _routed("a-little-more", "        y = torch.where(x.mean() > 1e-9, y * 2.0, y - 1.0)\n"),
    _routed("not-strict", "        y = torch.where(x.mean() >= 0, y * 2.0, y - 1.0)\n"),
    _routed(
        "nan-to-the-other-side",
        "        y = torch.where(x.mean() <= 0, y - 1.0, y * 2.0)\n",
    ),
    _routed(
        "blended",
        "        s = torch.sigmoid(1e4 * x.mean())\n"
        "        y = s * (y * 2.0) + (1 - s) * (y - 1.0)\n",
    ),
    _routed(
        "index-put-lost",
        _MEAN,
        ("x[positions] += 1.0", "x.index_add(0, positions, torch.ones(2, 6))"),
    ),
    _clipped(
        "no-gradient-at-zero",
        "    y = torch.where(norm > limit, y * (limit / norm), y)\n",
    ),
    _clipped("never-clipped", ""),
    _clipped("always-clipped", "    y = y * (limit / norm)\n"),
    _clipped("minimum", "    y = y * torch.minimum(limit / norm, norm / norm)\n"),
    _clipped("with-epsilon", "    y = torch.where(norm > limit, y * (limit / (norm + 1e-3)), y)\n"),
    _clipped("clamped-factor", "    y = y * (limit / norm.clamp(min=limit)).nan_to_num()\n"),
    _checked(
        "peak-by-row",
        "    peak = scores.amax(dim=-1, keepdim=True)\n"
        "    scores = torch.where(peak > 4.0, scores - peak, scores)\n",
    ),
    _checked("causal-always", _PEAK, ("    if causal:\n", "    if True:\n")),
    _checked("causal-by-a-large-number", _PEAK, ('float("-inf")', "-1e4")),
    _checked("diagonal-masked", _PEAK, (".tril()", ".tril(-1)")),
)
