"""Distil a wide MLP-mixer teacher into a narrow student on synthetic spectra."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

PATCHES, PATCH, CLASSES = 8, 6, 6


def spectra(count, seed):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(CLASSES, (count,), generator=g)
    grid = torch.linspace(0, 1, PATCHES * PATCH)
    center = (label.float()[:, None] + 0.5) / CLASSES
    peak = torch.exp(-((grid - center) ** 2) / 0.01)
    x = peak + 0.5 * torch.randn(count, PATCHES * PATCH, generator=g)
    return TensorDataset(x.view(count, PATCHES, PATCH), label)


class MixerBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(PATCHES, 16), nn.GELU(), nn.Linear(16, PATCHES))
        self.channels = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, width, depth, dropout=0.0):
        super().__init__()
        self.embed = nn.Linear(PATCH, width)
        self.blocks = nn.Sequential(*[MixerBlock(width) for _ in range(depth)])
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.drop(self.blocks(self.embed(x)).mean(dim=1)))


def distillation_loss(student, teacher, label, temperature, alpha):
    soft = F.kl_div(
        F.log_softmax(student / temperature, dim=-1),
        F.log_softmax(teacher / temperature, dim=-1),
        reduction="batchmean",
        log_target=True,
    )
    return alpha * temperature**2 * soft + (1 - alpha) * F.cross_entropy(student, label)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hits = torch.zeros((), dtype=torch.long)
    for x, label in loader:
        hits += (model(x).argmax(-1) == label).sum()
    return hits.item() / len(loader.dataset)


def pretrain(teacher, loader, epochs):
    optimizer = torch.optim.AdamW(teacher.parameters(), lr=3e-3)
    for _ in range(epochs):
        for x, label in loader:
            loss = F.cross_entropy(teacher(x), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--temperature", type=float, default=3.0)
    parser.add_argument("--alpha", type=float, default=0.7)
    args = parser.parse_args()

    torch.manual_seed(19)
    train = DataLoader(spectra(512, seed=1), 32, shuffle=True, drop_last=True)
    test = DataLoader(spectra(128, seed=2), 32)

    teacher = Mixer(width=48, depth=1)
    print(f"teacher loss {pretrain(teacher, train, epochs=4):.3f}")
    teacher.eval().requires_grad_(False)
    teacher_fast = torch.compile(teacher)
    print(f"teacher accuracy {accuracy(teacher_fast, test):.3f}")

    student = Mixer(width=16, depth=1, dropout=0.1)
    student_fast = torch.compile(student)
    optimizer = torch.optim.AdamW(student.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 1e-2, total_steps=args.epochs * len(train)
    )

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "student.pt")
        best = 0.0
        for epoch in range(args.epochs):
            student.train()
            total = torch.zeros(())
            for x, label in train:
                with torch.no_grad():
                    guide = teacher_fast(x)
                loss = distillation_loss(
                    student_fast(x), guide, label, args.temperature, args.alpha
                )
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                scheduler.step()
                total += loss.detach()
            score = accuracy(student_fast, test)
            print(f"epoch {epoch}: loss {total.item() / len(train):.3f} accuracy {score:.3f}")
            if score > best:
                best = score
                torch.save(student.state_dict(), path)
        student.load_state_dict(torch.load(path))
        print(f"kept the student with {accuracy(student_fast, test):.3f}")


if __name__ == "__main__":
    main()
