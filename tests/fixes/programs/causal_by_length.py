# ideal: bool-for-comparison
"""Attention that is causal for more than one token, at lengths that vary."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        length = x.shape[1]
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        return self.out(y)


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width)

    def forward(self, x):
        return x + self.attention(self.norm(x))


class Server:
    def __init__(self, model):
        self.model = torch.compile(model, backend="aot_eager", dynamic=True)

    @torch.no_grad()
    def answer(self, x):
        return self.model(x).mean().item()


def main():
    torch.manual_seed(0)
    server = Server(Block().eval())
    for length in (5, 6, 7, 9):
        print(f"{length} {server.answer(torch.randn(2, length, 8)):.4f}")


main()
