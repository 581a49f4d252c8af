"""A training loop that lowers a temperature each epoch: a new float, a new compilation."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = F.relu(self.first(x))
        return F.relu(self.second(self.drop(x)))


class Chooser(nn.Module):
    """Mixes prototypes by a softmax whose temperature the training loop sets."""

    def __init__(self, hidden, choices):
        super().__init__()
        self.keys = nn.Parameter(torch.randn(choices, hidden) * 0.1)
        self.values = nn.Parameter(torch.randn(choices, hidden) * 0.1)
        self.temperature = 1.0

    def forward(self, x):
        scores = x @ self.keys.t()
        weights = torch.softmax(scores / self.temperature, dim=-1)
        return weights @ self.values


class Network(nn.Module):
    def __init__(self, width, hidden, choices, classes):
        super().__init__()
        self.encoder = Encoder(width, hidden)
        self.chooser = Chooser(hidden, choices)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        x = self.encoder(x)
        x = x + self.chooser(x)
        return self.head(x)


class Points:
    """Random points with a label by their quadrant."""

    def __init__(self, count, width, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, width, generator=generator)
        self.y = (self.x[:, 0] > 0).long() * 2 + (self.x[:, 1] > 0).long()

    def batches(self, size):
        for start in range(0, len(self.x), size):
            yield self.x[start : start + size], self.y[start : start + size]


def train_epoch(step, model, optimizer, points, size):
    total = 0.0
    for x, y in points.batches(size):
        optimizer.zero_grad()
        loss = F.cross_entropy(step(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += float(loss)
    return total


def anneal(start, epoch, rate=0.9):
    return max(start * rate**epoch, 0.1)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    return parser.parse_args()


def main():
    options = parse()
    torch.manual_seed(0)
    model = Network(width=8, hidden=16, choices=4, classes=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    points = Points(32, 8)
    step = torch.compile(model, backend="eager")
    for epoch in range(options.epochs):
        model.chooser.temperature = anneal(2.0, epoch)
        total = train_epoch(step, model, optimizer, points, options.batch)
        print(f"epoch {epoch}: {total:.3f}")


if __name__ == "__main__":
    main()
