# ideal: compile-parts
"""A training step that is compiled with its backward pass, its optimizer and its metrics."""

import torch
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Module):
    def __init__(self, width=16, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(F.relu(self.body(x)))


class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)

    def mean(self):
        return sum(self.values) / len(self.values)


@torch.compile(backend="aot_eager")
def train_step(model, optimizer, x, y, loss_meter, accuracy_meter):
    logits = model(x)
    loss = F.cross_entropy(logits, y, label_smoothing=0.1)
    loss.backward()
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    hits = (logits.argmax(-1) == y).float().mean()
    loss_meter.update(loss.item())
    accuracy_meter.update(hits.item())
    return grad_norm


def batches(count, generator):
    for _ in range(count):
        x = torch.randn(16, 8, generator=generator)
        yield x, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        losses, hits = Meter(), Meter()
        for x, y in batches(6, generator):
            norm = train_step(model, optimizer, x, y, losses, hits)
        print(f"epoch {epoch} loss {losses.mean():.3f} hits {hits.mean():.2f} norm {norm:.2f}")


if __name__ == "__main__":
    main()
