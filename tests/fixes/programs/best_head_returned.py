# ideal: running-best
# The head with the smallest loss is returned.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Pool(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(n))

    def forward(self, x, y):
        outs = [h(x) for h in self.heads]
        return min(outs, key=lambda o: F.mse_loss(o, y))


pool = Pool(3)
c = torch.compile(pool, backend="eager")
with torch.no_grad():
    for _ in range(3):
        print(c(torch.randn(2, 4), torch.randn(2, 2)).sum().item())
