"""A small transformer that cuts its input to the longest row: the length is read off a tensor."""

import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    """Sizes of the model."""

    width: int = 32
    heads: int = 4
    depth: int = 2
    words: int = 100
    longest: int = 16


def sinusoids(longest: int, width: int) -> torch.Tensor:
    """Positions as sines and cosines."""
    place = torch.arange(longest).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    table = torch.zeros(longest, width)
    table[:, 0::2] = torch.sin(place * rate)
    table[:, 1::2] = torch.cos(place * rate)
    return table


class Attention(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.heads = settings.heads
        self.mix = nn.Linear(settings.width, 3 * settings.width)
        self.out = nn.Linear(settings.width, settings.width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        q, k, v = self.mix(x).chunk(3, dim=-1)
        shape = (rows, length, self.heads, width // self.heads)
        q, k, v = (t.view(shape).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
        mixed = scores.softmax(dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.attention = Attention(settings)
        self.before = nn.LayerNorm(settings.width)
        self.after = nn.LayerNorm(settings.width)
        self.dense = nn.Sequential(
            nn.Linear(settings.width, 4 * settings.width),
            nn.GELU(),
            nn.Linear(4 * settings.width, settings.width),
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x), mask)
        return x + self.dense(self.after(x))


class Summariser(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.embed = nn.Embedding(settings.words, settings.width)
        self.register_buffer("places", sinusoids(settings.longest, settings.width))
        self.blocks = nn.ModuleList(Block(settings) for _ in range(settings.depth))
        self.head = nn.Linear(settings.width, settings.words)

    def trim(self, tokens: torch.Tensor, mask: torch.Tensor):
        longest = mask.sum(dim=1).max().item()
        return tokens[:, :longest], mask[:, :longest]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = tokens != 0
        tokens, mask = self.trim(tokens, mask)
        x = self.embed(tokens) + self.places[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


def make_batch(rows: int, settings: Settings) -> torch.Tensor:
    tokens = torch.randint(1, settings.words, (rows, settings.longest))
    tokens[:, settings.longest // 2 :] = 0
    return tokens


def main() -> None:
    torch.manual_seed(0)
    settings = Settings()
    model = Summariser(settings).eval()
    compiled = torch.compile(model, backend="eager")
    with torch.no_grad():
        for _ in range(2):
            logits = compiled(make_batch(4, settings))
    print("logits", tuple(logits.shape))


if __name__ == "__main__":
    main()
