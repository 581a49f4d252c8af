"""Tabular classifier: entity embeddings, EMA weights, mixed precision validation."""
import copy
import json
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

CARDS = [7, 12, 3]


class TabNet(nn.Module):
    def __init__(self, cards, dense, classes, drop=0.2):
        super().__init__()
        self.emb = nn.ModuleList(nn.Embedding(c, 4) for c in cards)
        width = 4 * len(cards) + dense
        self.bn = nn.BatchNorm1d(dense)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Dropout(drop), nn.Linear(32, classes))

    def forward(self, cat, num):
        parts = [e(cat[:, i]) for i, e in enumerate(self.emb)]
        return self.mlp(torch.cat(parts + [self.bn(num)], 1))


class Ema:
    def __init__(self, model, decay):
        self.shadow = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.state_dict().values(), model.state_dict().values()):
            if s.dtype.is_floating_point:
                s.lerp_(p, 1 - self.decay)
            else:
                s.copy_(p)


def data(n):
    cat = torch.stack([torch.randint(c, (n,)) for c in CARDS], 1)
    num = torch.randn(n, 5)
    y = ((cat[:, 0] > 3).long() + (num[:, 0] > 0).long())
    return TensorDataset(cat, num, y)


def epoch(model, loader, opt=None, amp=False):
    model.train(opt is not None)
    right = seen = 0
    with torch.set_grad_enabled(opt is not None), torch.autocast("cpu", torch.bfloat16, enabled=amp):
        for cat, num, y in loader:
            logits = model(cat, num)
            if opt is not None:
                loss = nn.functional.cross_entropy(logits, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            right += (logits.argmax(1) == y).sum().item()
            seen += len(y)
    return right / seen


def main():
    torch.manual_seed(5)
    train, val = random_split(data(230), [180, 50])
    # 180 = 5 * 32 + 20, 50 = 32 + 18: the last batch is smaller
    tl = DataLoader(train, 32, shuffle=True)
    vl = DataLoader(val, 32)
    model = TabNet(CARDS, 5, 3)
    fast = torch.compile(model, backend="aot_eager")
    ema = Ema(model, 0.9)
    opt = torch.optim.AdamW(model.parameters(), 1e-2)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    logs = []
    with tempfile.TemporaryDirectory() as d:
        for e in range(4):
            tr = epoch(fast, tl, opt)
            ema.update(model)
            full, half = epoch(fast, vl), epoch(fast, vl, amp=True)
            sched.step()
            logs.append({"epoch": e, "train": tr, "val": full, "val_bf16": half})
            torch.save({"model": model.state_dict(), "ema": ema.shadow.state_dict()}, os.path.join(d, "ckpt.pt"))
            print(json.dumps(logs[-1]))
    print("ema", epoch(ema.shadow, vl))


if __name__ == "__main__":
    main()
