# ideal: running-best
# The output of the head that is surest, returned as it is found.
import torch
from torch import nn


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(6, 3) for _ in range(3))

    def forward(self, x):
        outs = [head(x) for head in self.heads]
        return max(outs, key=lambda o: o.norm().item())


torch.manual_seed(0)
net = torch.compile(Ensemble().eval(), backend="eager")
with torch.no_grad():
    for i in range(4):
        print(net(torch.randn(2, 6)).sum().item())
