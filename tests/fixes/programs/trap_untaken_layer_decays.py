# ideal: value-read-first
# trap: the layer that is not taken has no gradient; in one graph it would have zeros, and decay
import torch
from torch import nn


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.near = nn.Linear(3, 3)
        self.far = nn.Linear(3, 3)

    def forward(self, x):
        if x.mean() > 0:
            y = self.near(x)
        else:
            y = self.far(x)
        return y


net = Router()
fast = torch.compile(net, backend="aot_eager")
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.5)
for sign in (1.0, 1.0, -1.0):
    optimizer.zero_grad()
    fast(sign * torch.ones(2, 3)).pow(2).mean().backward()
    optimizer.step()
    print(round(net.far.weight.sum().item(), 5))
