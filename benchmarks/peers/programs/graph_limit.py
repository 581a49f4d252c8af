"""A backend with room for a dozen operations; the model has sixty."""

import torch
from torch import nn

ROOM = 12


def small_device(graph, inputs):
    calls = [node for node in graph.graph.nodes if node.op.startswith("call_")]
    if len(calls) > ROOM:
        raise MemoryError("more operations than the device has room for")
    return graph.forward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(20))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu() + x
        return x


def build():
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(4, 16),)


def main():
    model, args = build()
    compiled = torch.compile(model, backend=small_device)
    print("sum", round(float(compiled(*args).sum()), 3))


if __name__ == "__main__":
    main()
