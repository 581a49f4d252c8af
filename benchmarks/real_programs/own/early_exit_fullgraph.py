"""Early-exit image classifier: easy images leave after the first stage."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SIZE, CLASSES = 16, 4


def blobs(count, seed):
    """A bright blob in one of four corners, sometimes faint."""
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(CLASSES, (count,), generator=g)
    images = 0.3 * torch.randn(count, 1, SIZE, SIZE, generator=g)
    strength = 0.3 + torch.rand(count, generator=g)
    half = SIZE // 2
    for i, c in enumerate(label.tolist()):
        y, x = (c // 2) * half + 2, (c % 2) * half + 2
        images[i, 0, y : y + 4, x : x + 4] += strength[i]
    return TensorDataset(images, label)


def stage(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2)
    )


class Exit(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc = nn.Linear(channels * 4, CLASSES)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(x, 2).flatten(1))


class EarlyExitNet(nn.Module):
    def __init__(self, width=8, threshold=0.6):
        super().__init__()
        self.threshold = threshold
        self.stage1, self.exit1 = stage(1, width), Exit(width)
        self.stage2, self.exit2 = stage(width, 2 * width), Exit(2 * width)

    def forward(self, x):
        h = self.stage1(x)
        first = self.exit1(h)
        if self.training:
            return first, self.exit2(self.stage2(h))
        confidence = first.softmax(dim=-1).amax(dim=-1)
        if confidence.min() > self.threshold:
            return first
        return self.exit2(self.stage2(h))


def train(model, loader, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for images, label in loader:
            first, last = model(images)
            loss = 0.3 * F.cross_entropy(first, label) + F.cross_entropy(last, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}", flush=True)


class Service:
    """Answers small batches of requests."""

    def __init__(self, net, batch_size):
        self.net = net.eval()
        self.predict = torch.compile(net, fullgraph=True)
        self.batch_size = batch_size
        self.answered = 0

    def warmup(self):
        self.predict(torch.zeros(self.batch_size, 1, SIZE, SIZE))

    @torch.inference_mode()
    def answer(self, images):
        logits = self.predict(images)
        self.answered += len(images)
        return logits.argmax(dim=-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threshold", type=float, default=0.6)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()

    torch.manual_seed(23)
    net = EarlyExitNet(threshold=args.threshold)
    train(net, DataLoader(blobs(256, seed=1), 32, shuffle=True), args.epochs, lr=5e-3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "exit.pt")
        torch.save(net.state_dict(), path)
        served = EarlyExitNet(threshold=args.threshold)
        served.load_state_dict(torch.load(path))

    service = Service(served, args.batch_size)
    print("warming up", flush=True)
    service.warmup()
    hits = 0
    for images, label in DataLoader(blobs(64, seed=2), args.batch_size):
        hits += (service.answer(images) == label).sum().item()
    print(f"{service.answered} answered, accuracy {hits / service.answered:.3f}")


if __name__ == "__main__":
    main()
