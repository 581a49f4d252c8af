"""Copy task with a curriculum: the sequence gets longer whenever the loss is low enough.

Counts how many steps each length took.
"""
import collections
import csv
import io

import torch
import torch.nn as nn
import torch.nn.functional as F


class Curriculum:
    def __init__(self, start=6, grow=4, longest=26, patience=4):
        self.length, self.grow, self.longest, self.patience = start, grow, longest, patience
        self.count = 0

    def update(self):
        self.count += 1
        if self.count == self.patience and self.length < self.longest:
            self.length += self.grow
            self.count = 0
            return True
        return False


class RotaryAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.wqkv, self.wo = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x, cos, sin):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.h, -1).transpose(1, 2) for t in self.wqkv(x).chunk(3, -1))
        rot = lambda t: t * cos + torch.cat([-t[..., t.shape[-1] // 2 :], t[..., : t.shape[-1] // 2]], -1) * sin
        y = F.scaled_dot_product_attention(rot(q), rot(k), v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(B, T, C))


class Net(nn.Module):
    def __init__(self, vocab=12, dim=32, heads=2, depth=2, longest=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.att = nn.ModuleList(RotaryAttention(dim, heads) for _ in range(depth))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim)) for _ in range(depth))
        self.out = nn.Linear(dim, vocab)
        d = dim // heads
        f = torch.outer(torch.arange(longest).float(), 1e4 ** (-torch.arange(0, d, 2).float() / d))
        f = torch.cat([f, f], -1)
        self.register_buffer("cos", f.cos(), persistent=False)
        self.register_buffer("sin", f.sin(), persistent=False)

    def forward(self, ids):
        T = ids.shape[1]
        x, cos, sin = self.emb(ids), self.cos[:T], self.sin[:T]
        for a, f in zip(self.att, self.ff):
            x = x + a(F.rms_norm(x, x.shape[-1:]), cos, sin)
            x = x + f(F.rms_norm(x, x.shape[-1:]))
        return self.out(x)


def make(n, length):
    half = torch.randint(2, 12, (n, length // 2))
    return torch.cat([half, torch.ones(n, 1, dtype=torch.long), half], 1)


def main():
    torch.manual_seed(0)
    net = Net()
    net.compile(backend="aot_eager", dynamic=False)
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    cur = Curriculum()
    steps, rows = collections.Counter(), []
    for step in range(28):
        ids = make(8, cur.length)
        logits = net(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps[cur.length] += 1
        rows.append((step, cur.length, round(loss.item(), 3)))
        if cur.update():
            print(f"step {step}: now length {cur.length}")
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    print(dict(steps), len(out.getvalue()) > 0)


if __name__ == "__main__":
    main()
