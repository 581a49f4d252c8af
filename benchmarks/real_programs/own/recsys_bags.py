"""Click prediction: embedding bags for multi-valued features, a small MLP on top."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

TABLES = {"genres": 24, "tags": 64, "history": 120}
BAG = {"genres": 3, "tags": 5, "history": 8}
DENSE = 6


class Clicks(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        taste = torch.Generator().manual_seed(0)
        weights = {k: torch.randn(n, generator=taste) for k, n in TABLES.items()}
        self.dense = torch.randn(size, DENSE, generator=g)
        self.sparse = {
            k: torch.randint(1, n, (size, BAG[k]), generator=g) for k, n in TABLES.items()
        }
        for ids in self.sparse.values():
            ids[torch.rand(ids.shape, generator=g) < 0.2] = 0
        score = 0.5 * self.dense[:, 0]
        for k, ids in self.sparse.items():
            score = score + (weights[k][ids] * (ids > 0)).sum(1) / BAG[k] ** 0.5
        self.click = (score + 0.3 * torch.randn(size, generator=g) > 0).float()

    def __len__(self):
        return len(self.click)

    def __getitem__(self, index):
        features = {k: ids[index] for k, ids in self.sparse.items()}
        features["dense"] = self.dense[index]
        return features, self.click[index]


class ClickModel(nn.Module):
    def __init__(self, dim=16, hidden=32):
        super().__init__()
        self.bags = nn.ModuleDict(
            {k: nn.EmbeddingBag(n, dim, mode="sum", padding_idx=0) for k, n in TABLES.items()}
        )
        self.bottom = nn.Sequential(nn.Linear(DENSE, dim), nn.ReLU())
        pairs = (len(TABLES) + 1) * len(TABLES) // 2
        self.top = nn.Sequential(
            nn.Linear(dim + pairs, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1)
        )
        row, col = torch.tril_indices(len(TABLES) + 1, len(TABLES) + 1, offset=-1)
        self.register_buffer("row", row, persistent=False)
        self.register_buffer("col", col, persistent=False)

    def forward(self, features):
        dense = self.bottom(features["dense"])
        parts = [dense]
        for name, bag in self.bags.items():
            parts.append(bag(features[name]))
        stacked = torch.stack(parts, dim=1)
        dots = stacked @ stacked.transpose(1, 2)
        cross = dots[:, self.row, self.col]
        return self.top(torch.cat([dense, cross], dim=1)).squeeze(1)


def auc(scores, labels):
    order = scores.argsort()
    ranks = torch.empty_like(scores)
    ranks[order] = torch.arange(1, len(scores) + 1, dtype=scores.dtype)
    positive = labels.sum()
    negative = len(labels) - positive
    return (
        (ranks[labels > 0].sum() - positive * (positive + 1) / 2) / (positive * negative)
    ).item()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    scores, labels = [], []
    for features, click in loader:
        scores.append(model(features).sigmoid())
        labels.append(click)
    return auc(torch.cat(scores), torch.cat(labels))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(8)
    train = DataLoader(Clicks(1024, seed=1), args.batch_size, shuffle=True, drop_last=True)
    test = DataLoader(Clicks(256, seed=2), args.batch_size)
    net = ClickModel()
    model = torch.compile(net)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=args.lr)

    best = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "click.pt")
        for epoch in range(args.epochs):
            model.train()
            total = torch.zeros(())
            for features, click in train:
                loss = F.binary_cross_entropy_with_logits(model(features), click)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.detach()
            score = evaluate(model, test)
            print(f"epoch {epoch}: loss {total.item() / len(train):.4f} auc {score:.4f}")
            if score > best:
                best = score
                torch.save(net.state_dict(), path)
        net.load_state_dict(torch.load(path))
        print(f"best auc {best:.4f}, reloaded {evaluate(model, test):.4f}")


if __name__ == "__main__":
    main()
