# ideal: none
# trap: the branch keeps the number for the next call, and counts
import torch
from torch import nn


class Patience:
    def __init__(self):
        self.best = float("inf")
        self.bad = 0


patience = Patience()
net = nn.Linear(4, 1)


@torch.compile(backend="eager")
def validate(x):
    loss = net(x).pow(2).mean()
    value = loss.item()
    if value < patience.best:
        patience.best = value
        patience.bad = 0
    else:
        patience.bad += 1
    return loss


torch.manual_seed(0)
for scale in (3.0, 2.0, 4.0, 1.0):
    with torch.no_grad():
        validate(torch.randn(5, 4) * scale)
    print(f"{patience.best:.4f} {patience.bad}")
