# ideal: none
# trap: experts without tokens have no gradient, and would get one of zeros
import torch
from torch import nn
import torch.nn.functional as F


class Mlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up = nn.Linear(d, 2 * d)
        self.down = nn.Linear(2 * d, d)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Experts(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.router = nn.Linear(d, n)
        self.experts = nn.ModuleList([Mlp(d) for _ in range(n)])

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(1, dim=-1)
        weights, chosen = weights.squeeze(-1), chosen.squeeze(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mask = chosen == i
            if mask.any():
                out[mask] = expert(x[mask]) * weights[mask].unsqueeze(-1)
        return out


torch.manual_seed(0)
net = Experts(8, 4)
step = torch.compile(net, backend="eager")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(16, 8)
    loss = step(x).square().mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
    print(round(loss.item(), 4))
