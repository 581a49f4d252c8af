"""LoRA fine-tuning of a frozen text classifier, then scoring it at several adapter strengths."""

import argparse
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH, CLASSES = 50, 12, 4


def task(count, seed, shift):
    """The class is decided by the first token, moved by `shift`."""
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(VOCAB, (count, LENGTH), generator=g)
    return TensorDataset(tokens, (tokens[:, 0] + shift) % CLASSES)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.alpha, self.rank = alpha, rank
        self.strength = 1.0
        self.enabled = True

    def forward(self, x):
        y = self.base(x)
        if self.enabled:
            scale = self.strength * self.alpha / self.rank
            y = y + scale * (x @ self.a.T @ self.b.T)
        return y


class Encoder(nn.Module):
    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(VOCAB, width)
        self.pos = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        self.q, self.v = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.o = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens):
        x = self.embed(tokens) + self.pos
        split = [
            f(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        ]
        y = F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2)
        return self.head(self.norm(x + self.o(y))[:, 0])


def adapters(model):
    return [m for m in model.modules() if isinstance(m, LoRALinear)]


def add_lora(model):
    model.requires_grad_(False)
    model.q, model.v = LoRALinear(model.q), LoRALinear(model.v)
    model.head = LoRALinear(model.head)
    return model


def set_strength(model, value):
    for module in adapters(model):
        module.strength = value
        module.enabled = value > 0


def fit(model, parameters, loader, epochs, lr):
    optimizer = torch.optim.AdamW(parameters, lr=lr)
    for _ in range(epochs):
        for tokens, label in loader:
            loss = F.cross_entropy(model(tokens), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, loader):
    hits = sum((model(t).argmax(-1) == y).sum().item() for t, y in loader)
    return hits / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--sweep", type=float, nargs="+")
    args = parser.parse_args()
    sweep = args.sweep or [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2]

    torch.manual_seed(31)
    old_train = DataLoader(task(256, 1, shift=0), 32, shuffle=True)
    new_train = DataLoader(task(256, 2, shift=1), 32, shuffle=True)
    old_test, new_test = DataLoader(task(64, 3, shift=0), 32), DataLoader(task(64, 3, shift=1), 32)

    net = Encoder()
    base_loss = fit(net, net.parameters(), old_train, epochs=8, lr=5e-3)
    print(f"base model: loss {base_loss:.3f} accuracy {accuracy(net, old_test):.2f}")

    net = add_lora(net)
    model = torch.compile(net)
    trainable = [p for p in net.parameters() if p.requires_grad]
    count, total = sum(p.numel() for p in trainable), sum(p.numel() for p in net.parameters())
    print(f"training {count} of {total} parameters")
    loss = fit(model, trainable, new_train, args.epochs, lr=1e-2)
    print(f"adapter: loss {loss:.3f}")

    with tempfile.TemporaryDirectory() as folder:
        state = {k: v for k, v in net.state_dict().items() if k.endswith((".a", ".b"))}
        torch.save(state, os.path.join(folder, "adapter.pt"))
        net.load_state_dict(torch.load(os.path.join(folder, "adapter.pt")), strict=False)

    for strength in sweep:
        set_strength(net, strength)
        old, new = accuracy(model, old_test), accuracy(model, new_test)
        print(f"strength {strength:.1f}: old task {old:.2f} new task {new:.2f}")


if __name__ == "__main__":
    main()
