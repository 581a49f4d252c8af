"""Keyword spotting on utterances of variable length. GRU over packed sequences."""
import math
import os
import tempfile

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

WORDS = ["yes", "no", "stop"]


class Utterances(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.data = []
        for _ in range(n):
            y = int(torch.randint(3, (1,), generator=g))
            t = int(torch.randint(12, 40, (1,), generator=g))
            base = torch.sin(torch.arange(t)[:, None] * (0.2 + 0.3 * y) + torch.arange(16)[None])
            self.data.append((base + 0.3 * torch.randn(t, 16, generator=g), y))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]


def collate(items):
    items.sort(key=lambda it: -len(it[0]))
    feats = pad_sequence([f for f, _ in items], batch_first=True)
    lengths = torch.tensor([len(f) for f, _ in items])
    return feats, lengths, torch.tensor([y for _, y in items])


class SpecAugment(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.width = width

    def forward(self, x):
        if not self.training:
            return x
        mask = torch.rand(x.shape[0], 1, x.shape[2]) < self.width / x.shape[2]
        return x.masked_fill(mask, 0.0)


class Spotter(nn.Module):
    def __init__(self, feats=16, hidden=24):
        super().__init__()
        self.aug = SpecAugment()
        self.front = nn.Sequential(nn.Linear(feats, hidden), nn.LayerNorm(hidden), nn.ReLU())
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.attn = nn.Linear(hidden, 1)
        self.out = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, len(WORDS)))

    def forward(self, feats, lengths):
        h = self.front(self.aug(feats))
        packed = pack_padded_sequence(h, lengths, batch_first=True)
        y, _ = self.gru(packed)
        y, _ = pad_packed_sequence(y, batch_first=True)
        score = self.attn(y).squeeze(-1)
        valid = torch.arange(y.shape[1])[None] < lengths[:, None]
        w = score.masked_fill(~valid, -math.inf).softmax(-1)
        return self.out((w[..., None] * y).sum(1))


class EarlyStopping:
    def __init__(self, patience, path):
        self.patience, self.path, self.best, self.bad = patience, path, math.inf, 0

    def __call__(self, value, model):
        if value < self.best:
            self.best, self.bad = value, 0
            torch.save(model.state_dict(), self.path)
        else:
            self.bad += 1
        return self.bad > self.patience


def main():
    torch.manual_seed(0)
    tr = DataLoader(Utterances(48, 0), 8, shuffle=True, collate_fn=collate)
    va = DataLoader(Utterances(24, 1), 8, collate_fn=collate)
    model = Spotter()
    fast = torch.compile(model, backend="aot_eager")
    opt = torch.optim.Adam(model.parameters(), 5e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=3 * len(tr))
    with tempfile.TemporaryDirectory() as tmp:
        stop = EarlyStopping(2, os.path.join(tmp, "best.pt"))
        for epoch in range(3):
            model.train()
            for feats, lengths, y in tr:
                loss = nn.functional.cross_entropy(fast(feats, lengths), y, label_smoothing=0.05)
                opt.zero_grad()
                loss.backward()
                opt.step()
                sched.step()
            model.eval()
            with torch.no_grad():
                out = [(fast(f, n), y) for f, n, y in va]
            vl = sum(nn.functional.cross_entropy(o, y).item() for o, y in out) / len(out)
            acc = torch.cat([o.argmax(-1) == y for o, y in out]).float().mean().item()
            print(f"epoch {epoch}: train {loss.item():.3f} val {vl:.3f} acc {acc:.2f}")
            if stop(vl, model):
                break


if __name__ == "__main__":
    main()
