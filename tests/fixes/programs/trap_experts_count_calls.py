# ideal: none
# trap: experts count their calls, and those without tokens would be called
import torch
from torch import nn
import torch.nn.functional as F


class Mlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.up = nn.Linear(d, 2 * d)
        self.down = nn.Linear(2 * d, d)

    def forward(self, x):
        self.calls += 1
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
with torch.no_grad():
    for _ in range(3):
        print(
            [e.calls.item() for e in net.experts], round(step(torch.randn(16, 8)).sum().item(), 4)
        )
