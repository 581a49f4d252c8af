"""A small model with the usual ways to lose compilation. Run it under compilescope:

compilescope run examples/tour.py
"""

import torch
from torch import nn


class Router(nn.Module):
    """Sends a batch through one of two experts, and tells everybody about it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 1)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        score = self.gate(x).mean()
        if score > 0:
            x = self.experts[0](x)
        else:
            x = self.experts[1](x)
        print(f"routed a batch of {x.shape[0]}")
        return x * (1.0 + 0.01 * self.step)


class Model(nn.Module):
    def __init__(self, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.routers = nn.ModuleList(Router(width) for _ in range(layers))
        self.head = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for router in self.routers:
            x = torch.relu(router(x))
        return normalise(self.head(x))


def normalise(logits: torch.Tensor) -> torch.Tensor:
    largest = logits.abs().max().item()
    return logits / largest


def main() -> None:
    torch.manual_seed(0)
    model = torch.compile(Model().eval(), backend="aot_eager")
    with torch.no_grad():
        for step, batch in enumerate((8, 8, 12, 16)):
            for router in model.routers:
                router.step = step
            logits = model(torch.randn(batch, 32))
    print(f"done: {tuple(logits.shape)}")


if __name__ == "__main__":
    main()
