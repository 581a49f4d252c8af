"""Nothing is lost: one graph, compiled once. A good answer is that there is nothing to do."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 32)
        self.outer = nn.Linear(32, 16)

    def forward(self, x):
        return self.outer(self.inner(x).relu()).softmax(-1)


def build():
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(4, 16),)


def main():
    model, args = build()
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(3):
        out = compiled(*args)
    print("sum", round(float(out.sum()), 3))


if __name__ == "__main__":
    main()
