"""A GPT of 8 wide layers, a batch of long sequences: bound by matrix products."""

import itertools
import sys
import time

import torch
from torch import nn

SMALL = "--small" in sys.argv
DEVICE = "cuda" if torch.cuda.is_available() and not SMALL else "cpu"
STEPS = 64 if SMALL else 160
WINDOW = STEPS // 16


def now():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, width, layers, heads, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


def build():
    return GPT(256, 64, 2, 2, 32) if SMALL else GPT(8192, 1536, 8, 16, 512)


def batch():
    shape, most = ((1, 32), 256) if SMALL else ((8, 512), 8192)
    return torch.randint(0, most, shape, device=DEVICE)


def main():
    torch.manual_seed(0)
    model = build().to(DEVICE).eval()
    compiled = torch.compile(model)
    batches, times = [batch() for _ in range(4)], []
    with torch.no_grad():
        for step in range(STEPS):
            if step >= STEPS // 2 and step % WINDOW == 0:
                times.append(now())
            out = compiled(batches[step % 4])
    times.append(now())
    print("step_ms", *((b - a) * 1000 / WINDOW for a, b in itertools.pairwise(times)))
    print("shape", tuple(out.shape))


if __name__ == "__main__":
    main()
