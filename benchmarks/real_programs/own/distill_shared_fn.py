"""Knowledge distillation; one compiled `run` serves teacher and student."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, width, depth, classes=5):
        super().__init__()
        layers, c = [], 1
        for i in range(depth):
            layers += [nn.Conv2d(c, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            c = width
        self.features = nn.Sequential(*layers)
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


@torch.compile(backend="aot_eager")
def run(net, images):
    return net(images)


def batch(n, g):
    y = torch.randint(5, (n,), generator=g)
    x = 0.4 * torch.randn(n, 1, 12, 12, generator=g)
    for i, c in enumerate(y.tolist()):
        x[i, 0, 2 * c : 2 * c + 2] += 1
    return x, y


def fit_teacher(teacher, steps, g):
    opt = torch.optim.SGD(teacher.parameters(), 0.1, momentum=0.9)
    for _ in range(steps):
        x, y = batch(16, g)
        loss = F.cross_entropy(teacher(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()


def accuracy(net, g, n=4):
    net.eval()
    hits = 0
    with torch.no_grad():
        for _ in range(n):
            x, y = batch(16, g)
            hits += (run(net, x).argmax(1) == y).sum().item()
    return hits / (16 * n)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=12)
    ap.add_argument("--T", type=float, default=3.0)
    args = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    teacher, student = ConvNet(16, 3), ConvNet(8, 2)
    print("teacher loss", round(fit_teacher(teacher, 15, g), 3))
    teacher.eval().requires_grad_(False)
    opt = torch.optim.AdamW(student.parameters(), 5e-3)
    for epoch in range(3):
        student.train()
        for _ in range(args.steps):
            x, y = batch(16, g)
            with torch.no_grad():
                t = run(teacher, x)
            s = run(student, x)
            kd = F.kl_div(F.log_softmax(s / args.T, 1), F.softmax(t / args.T, 1), reduction="batchmean") * args.T**2
            loss = 0.7 * kd + 0.3 * F.cross_entropy(s, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, student {accuracy(student, g):.2f}, teacher {accuracy(teacher, g):.2f}")


if __name__ == "__main__":
    main()
