"""The model and the loop that most planted programs share."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ON_GPU = DEVICE == "cuda"
WIDTH, LAYERS, BATCH = (2048, 4, 32) if ON_GPU else (128, 2, 8)
"""On a GPU: large enough that a plain step keeps the device busy."""
LENGTH, WORDS = 128, 1024
STEPS = 30


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width: int = WIDTH, layers: int = LAYERS, words: int = WORDS) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Training(nn.Module):
    """The model and its loss, compiled together."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits = self.net(ids)
        return functional.cross_entropy(logits.flatten(0, -2), ids.flatten())


def batch(size: int = BATCH) -> torch.Tensor:
    return torch.randint(0, WORDS, (size, LENGTH), device=DEVICE)


def fast() -> None:
    """All that is not planted is as fast as it goes."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")


def optimizer(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
