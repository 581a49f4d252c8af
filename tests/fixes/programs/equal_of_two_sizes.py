# ideal: where-for-if
"""`torch.equal` is False for tensors of two sizes, where `==` broadcasts: the sizes are asked first."""

import torch
from torch import nn


class Refine(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, ids, pad):
        y = torch.tanh(self.lin(x))
        ids = ids + y.size(-1)
        if torch.equal(ids, pad):
            y = y * 2
        return y.sum(-1)


torch.manual_seed(0)
model = torch.compile(Refine(), backend="eager")
for pad in ([5], [5, 5], [5, 6], [5]):
    print(model(torch.randn(2, 4), torch.tensor([1, 1]), torch.tensor(pad)).sum().item())
