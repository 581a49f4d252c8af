"""Sequence tagging with a mixture-of-experts transformer layer (top-2 routing)."""

import argparse
import logging
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
log = logging.getLogger("moe")

VOCAB = 40
TAGS = 5
LENGTH = 16


def make_data(count, seed):
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(VOCAB, (count, LENGTH), generator=g)
    shifted = torch.roll(tokens, 1, dims=1)
    return TensorDataset(tokens, (tokens + (shifted % 2)) % TAGS)


class Expert(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class MoE(nn.Module):
    def __init__(self, width, experts=4, top_k=2):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList([Expert(width, 2 * width) for _ in range(experts)])

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        probs = self.router(x).softmax(dim=-1)
        weights, chosen = probs.topk(self.top_k, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mask = (chosen == i).any(dim=-1)
            if mask.any():
                weight = (weights * (chosen == i)).sum(dim=-1, keepdim=True)
                out[mask] += weight[mask] * expert(x[mask])
        load = F.one_hot(chosen[:, 0], len(self.experts)).float().mean(0)
        balance = len(self.experts) * (load * probs.mean(0)).sum()
        return out.reshape(shape), balance


class Layer(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.moe = MoE(width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        y, balance = self.moe(self.norm2(x))
        return x + y, balance


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.pos = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.layer = Layer(width)
        self.head = nn.Linear(width, TAGS)

    def forward(self, tokens):
        x, balance = self.layer(self.embed(tokens) + self.pos)
        return self.head(x), balance


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = total = 0
    for tokens, tags in loader:
        logits, _ = model(tokens)
        hits += (logits.argmax(-1) == tags).sum().item()
        total += tags.numel()
    model.train()
    return hits / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--balance", type=float, default=0.01)
    args = parser.parse_args()
    torch.manual_seed(2)
    train = DataLoader(make_data(160, seed=1), batch_size=16, shuffle=True)
    test = DataLoader(make_data(48, seed=2), batch_size=16)
    net = Tagger()
    model = torch.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        for tokens, tags in train:
            logits, balance = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            (loss + args.balance * balance).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        log.info("epoch %d loss %.3f balance %.2f", epoch, loss.item(), balance.item())
    print(f"accuracy {accuracy(model, test):.2f}")
    with tempfile.TemporaryDirectory() as folder:
        torch.save(net.state_dict(), os.path.join(folder, "tagger.pt"))
        restored = Tagger()
        restored.load_state_dict(torch.load(os.path.join(folder, "tagger.pt")))
        print(f"restored {accuracy(restored, test):.2f}")


if __name__ == "__main__":
    main()
