"""A program that compiles one model and calls it once: `model.py small|transformer infer|train`.

It knows nothing of compilescope. Where the variable BENCHMARK_OUT names a file, it leaves there
the CPU seconds it had used at three moments, its finished children's apart: torch `imported`; the
compiler `loaded`, by a function of one line, since the first compilation of a process imports
much of torch; and the model `compiled` and called.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """One transformer layer, with its norms in front."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(hidden)
        self.norm_feed = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.project = nn.Linear(hidden, hidden)
        self.widen = nn.Linear(hidden, 4 * hidden)
        self.narrow = nn.Linear(4 * hidden, hidden)

    def attend(self, x: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(mixed.transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm_attention(x))
        return x + self.narrow(nn.functional.gelu(self.widen(self.norm_feed(x))))


class Transformer(nn.Module):
    """Tokens in, logits out."""

    def __init__(self, layers: int = 12, hidden: int = 256, words: int = 512) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, hidden)
        self.layers = nn.ModuleList(Block(hidden, heads=4) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, words)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def build(name: str) -> tuple[nn.Module, Tensor]:
    """The model and an input for it."""
    torch.manual_seed(0)
    if name == "transformer":
        return Transformer(), torch.randint(0, 512, (2, 32))
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8))
    return model, torch.randn(16, 64)


def load_compiler() -> None:
    """Make torch import all that a compilation, forward and backward, needs."""

    def step(x: Tensor) -> Tensor:
        return x.sin().sum()

    torch.compile(step, backend="inductor")(torch.ones(8, requires_grad=True)).backward()


def compile_and_call(model: nn.Module, x: Tensor, mode: str) -> None:
    """What is measured."""
    compiled = torch.compile(model, backend="inductor")
    if mode == "train":
        compiled(x).square().mean().backward()
    else:
        with torch.inference_mode():
            compiled(x)


def _cpu() -> dict[str, float]:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"own": time.process_time(), "children": children.ru_utime + children.ru_stime}


def main() -> None:
    torch.set_num_threads(1)
    imported = _cpu()
    load_compiler()
    model, x = build(sys.argv[1])
    loaded = _cpu()
    compile_and_call(model, x, sys.argv[2])
    compiled = _cpu()
    out = os.environ.get("BENCHMARK_OUT")
    if out:
        with open(out, "w") as file:
            json.dump({"imported": imported, "loaded": loaded, "compiled": compiled}, file)


if __name__ == "__main__":
    main()
