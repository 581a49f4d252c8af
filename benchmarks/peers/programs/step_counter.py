"""A counter on the module: compiled anew at each step, until the limit ends compilation."""

import torch
from torch import nn


class Warmup(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)
        self.step = 0

    def forward(self, x):
        y = self.layer(x)
        return y * (1.0 + 0.01 * self.step)


def build():
    torch.manual_seed(0)
    return Warmup().eval(), (torch.randn(4, 16),)


def main():
    model, args = build()
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(12):
        out = compiled(*args)
        model.step += 1
    print("sum", round(float(out.sum()), 3))


if __name__ == "__main__":
    main()
