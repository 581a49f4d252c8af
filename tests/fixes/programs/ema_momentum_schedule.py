# ideal: tensor-argument
"""A teacher follows a student; its momentum comes from a cosine schedule, as a Python float."""

import copy
import math

import torch
import torch.nn as nn

STEPS = 6


class Encoder(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return torch.tanh(self.inner(x)) * self.scale


def momentum_at(step):
    return 1 - 0.5 * (1 - 0.9) * (math.cos(math.pi * step / STEPS) + 1)


@torch.compile(backend="aot_eager")
@torch.no_grad()
def follow(student, teacher, m):
    keep = 1 - m
    for s, t in zip(student, teacher):
        t.mul_(m).add_(s, alpha=keep)


@torch.no_grad()
def distance(student, teacher):
    pairs = zip(student.parameters(), teacher.parameters())
    return sum((s - t).abs().sum().item() for s, t in pairs)


def main():
    torch.manual_seed(0)
    student = Encoder()
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for step in range(STEPS):
        x = torch.randn(16, 8)
        loss = (student(x) - teacher(x.flip(0))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        m = momentum_at(step)
        follow(list(student.parameters()), list(teacher.parameters()), m)
        print(f"{step} momentum {m:.3f} distance {distance(student, teacher):.4f}")


main()
