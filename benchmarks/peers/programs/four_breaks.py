"""Four places where Dynamo gives up, one after the other, called eight times."""

import time

import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)
        self.outer = nn.Linear(16, 4)

    def forward(self, x):
        hidden = self.inner(x).relu()
        print("hidden", tuple(hidden.shape))
        if hidden.mean() > 0.5:
            hidden = hidden * 0.5
        scale = hidden.amax().item()
        scores = self.outer(hidden) / (1.0 + scale)
        time.sleep(0)
        return scores.log_softmax(-1)


def build():
    torch.manual_seed(0)
    return Scorer().eval(), (torch.randn(8, 16),)


def main():
    model, args = build()
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(8):
        out = compiled(*args)
    print("sum", round(float(out.sum()), 3))


if __name__ == "__main__":
    main()
