# ideal: isolated-recompiles
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.linear = nn.Linear(4, 4)

    def forward(self, x, memory):
        return self.linear(x) + memory[self.layer_idx]


torch.manual_seed(3)
blocks = nn.ModuleList(Block(i) for i in range(3))
compiled = [torch.compile(block, backend="eager") for block in blocks]
memory = [torch.full((4,), float(i)) for i in range(3)]
x = torch.ones(2, 4)
for block in compiled:
    x = block(x, memory)
print(f"{x.sum().item():.4f}")
