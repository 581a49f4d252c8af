"""Music transformer with a lazily built bias table and activation logging through hooks."""
import collections
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

logger = logging.getLogger("music")
logging.basicConfig(level=logging.WARNING)


class RelativeBias(nn.Module):
    def __init__(self, heads, longest=64):
        super().__init__()
        self.table = nn.Embedding(2 * longest, heads)
        self.longest = longest
        self.index = None  # built at the first forward

    def forward(self, t):
        if self.index is None:
            p = torch.arange(t)
            self.index = (p[None] - p[:, None]) + self.longest
        return self.table(self.index).permute(2, 0, 1)


class Layer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.bias = RelativeBias(h)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias(T))
        x = x + self.o(y.transpose(1, 2).reshape(B, T, C))
        return x + self.ff(x)


class Music(nn.Module):
    def __init__(self, vocab=32, d=32, h=2, depth=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(Layer(d, h) for _ in range(depth))
        self.out = nn.Linear(d, vocab)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def notes(n, t, g):
    start = torch.randint(0, 32, (n, 1), generator=g)
    return (start + 3 * torch.arange(t + 1)) % 32


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    model = Music()
    fast = torch.compile(model, backend="aot_eager")
    opt = torch.optim.Adam(model.parameters(), 3e-3)
    loss_log = collections.deque(maxlen=5)
    for step in range(15):
        seq = notes(8, 16, g)
        loss = F.cross_entropy(fast(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_log.append(loss.item())
    print("mean of the last losses", round(sum(loss_log) / len(loss_log), 3))
    model.eval()
    with torch.no_grad():
        seq = notes(8, 16, g)
        acc = (fast(seq[:, :-1]).argmax(-1) == seq[:, 1:]).float().mean()
    print("accuracy", round(acc.item(), 2))


if __name__ == "__main__":
    main()
