"""Two blocks of a transformer: what docs/guides/mini-bug.md looks for a planted bug in."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def build() -> tuple[nn.Module, tuple[torch.Tensor]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), Block(64), Block(64), nn.Linear(64, 8))
    return model.eval(), (torch.randn(32, 64),)


if __name__ == "__main__":
    model, inputs = build()
    with torch.no_grad():
        torch.compile(model, backend="compilescope_mini")(*inputs)
