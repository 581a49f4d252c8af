"""The program behind the golden logs: breaks of several kinds, recompiles, a training step."""

import sys

import torch


class Gate(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if y.sum() > 0:
            y = y + 1
        print("gated")
        return y.relu()


@torch.compile(backend=sys.argv[1])
def total(x: torch.Tensor, scale: float) -> torch.Tensor:
    parts = []
    for row in x:
        parts.append(row.sum().item())
    return x.sum() * scale * len(parts)


@torch.compile(backend=sys.argv[1])
def mix(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return x.sin() * 2 if flag else x.cos()


def main() -> None:
    gate = torch.compile(Gate(), backend=sys.argv[1])
    gate(torch.ones(4, 8)).sum().backward()
    gate(torch.ones(6, 8)).sum().backward()
    total(torch.ones(2, 3), 0.5)
    mix(torch.ones(3), True)
    mix(torch.ones(4), False)


main()
