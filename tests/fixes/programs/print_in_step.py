# ideal: print-in-graph
"""A training step that tells how it goes."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def step(x, y):
    out = net(x).squeeze(-1)
    loss = (out - y).pow(2).mean()
    print("loss", f"{loss.item():.4f}", sep=" = ", end=";\n")
    return loss


fast = torch.compile(step, backend="aot_eager")
x, y = torch.randn(6, 4), torch.randn(6)
for _ in range(3):
    opt.zero_grad()
    fast(x, y).backward()
    opt.step()
print("done")
