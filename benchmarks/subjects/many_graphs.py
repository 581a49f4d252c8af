"""A program of as many different graphs as one likes, for pages of long runs.

    python many_graphs.py COUNT [BACKEND]

It writes modules `layers_00.py`, `layers_01.py`, ... into the working folder, with ten functions
each that differ in their operations and sizes, compiles every function and calls it once. Two of
ten have a graph break in the middle (a print, or a number read from a tensor), and so two graphs.
"""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import torch

HEAD = "import torch\nfrom torch.nn import functional as F\n"
STEPS = (
    "x = F.layer_norm(x, (x.shape[-1],))",
    "x = F.linear(x, w)",
    "x = x + 0.1 * F.gelu(x)",
    "x = x * torch.sigmoid(x)",
    "x = F.softmax(x @ x.transpose(-1, -2) / {scale}, dim=-1) @ x",
    "x = torch.cat([x[..., {half}:], x[..., :{half}]], dim=-1)",
    "x = x - x.mean(dim=-1, keepdim=True)",
    "x = torch.where(x > 0, x, {slope} * x)",
    "x = torch.tanh(x) + x.cumsum(dim=-2) * {slope}",
    "x = x.clamp(-{scale}, {scale})",
)
BREAKS = {
    0: 'print("layer {name}", tuple(x.shape))',
    1: "x = x / max(x.abs().max().item(), 1.0)",
}


PER_FILE = 10


def source(numbers: range) -> str:
    return HEAD + "".join(_function(number) for number in numbers)


def _function(number: int) -> str:
    chosen = random.Random(number)
    name = f"layer_{number:03}"
    fill = {"scale": chosen.randint(2, 9), "half": chosen.randint(1, 7)}
    steps = [
        step.format(slope=chosen.randint(1, 99) / 100, **fill)
        for step in chosen.choices(STEPS, k=12)
    ]
    if number % PER_FILE in BREAKS:
        steps.insert(6, BREAKS[number % PER_FILE].format(name=name))
    body = "".join(f"    {step}\n" for step in steps)
    return f"\n\ndef {name}(x, w):\n{body}    return x\n"


def functions_for(graphs: int) -> int:
    """Twelve graphs in every ten functions, two each in the first two of a file."""
    whole, rest = divmod(graphs, PER_FILE + len(BREAKS))
    return whole * PER_FILE + max(rest - len(BREAKS), (rest + 1) // 2)


def main(count: str, backend: str = "aot_eager") -> None:
    functions = functions_for(int(count))
    sys.path.insert(0, str(Path.cwd()))
    torch.manual_seed(0)
    with torch.no_grad():
        for number, first in enumerate(range(0, functions, PER_FILE)):
            run_file(f"layers_{number:02}", range(first, min(first + PER_FILE, functions)), backend)


def run_file(name: str, numbers: range, backend: str) -> None:
    Path(f"{name}.py").write_text(source(numbers))
    importlib.invalidate_caches()
    layers = importlib.import_module(name)
    for number in numbers:
        width = 8 * (1 + number % 6)
        layer = torch.compile(getattr(layers, f"layer_{number:03}"), backend=backend)
        layer(torch.randn(4, 8 + number % 5, width), torch.randn(width, width))


if __name__ == "__main__":
    main(*sys.argv[1:])
