"""A backend without a kernel for one operation of sixty."""

import torch
from torch import nn


def short_of_erf(graph, inputs):
    if any(node.target is torch.erf for node in graph.graph.nodes):
        raise NotImplementedError("no kernel for erf")
    return graph.forward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(12))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x).relu() + x
            if number == 7:
                x = x * (1.0 + torch.erf(x))
            x = x / x.abs().amax()
        return x


def build():
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(4, 16),)


def main():
    model, args = build()
    compiled = torch.compile(model, backend=short_of_erf)
    print("sum", round(float(compiled(*args).sum()), 3))


if __name__ == "__main__":
    main()
