# ideal: isolated-recompiles
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.up = nn.Linear(4, hidden)
        self.down = nn.Linear(hidden, 4)

    def forward(self, x):
        return self.down(self.up(x).relu())


torch.manual_seed(0)
experts = nn.ModuleList([Expert(hidden) for hidden in (6, 8, 10)]).eval()
[expert.compile(backend="eager") for expert in experts]
x = torch.ones(3, 4)
with torch.no_grad():
    for turn in range(2):
        print(turn, [round(expert(x).sum().item(), 4) for expert in experts])
