"""Inductor's C++ for a relu does not compile: torch's own bug for testing its minifier."""

import torch
from torch import nn

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).sigmoid() + x
        x = torch.relu(x)
        for layer in self.layers:
            x = layer(x).cos() * x
        return x


def build():
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(4, 16),)


def main():
    model, args = build()
    compiled = torch.compile(model)
    with torch.no_grad():
        print("sum", round(float(compiled(*args).sum()), 3))


if __name__ == "__main__":
    main()
