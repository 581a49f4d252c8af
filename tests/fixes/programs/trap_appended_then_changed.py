# ideal: none
# trap: what is returned was changed in place after the list was added to, though not in every call
import torch
from torch import nn


def shift(t, by):
    t.add_(by)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x, by):
        h = x * 2
        self.seen.append(h.sum())
        shift(h, by)
        return h.relu()


net = torch.compile(Net(), backend="eager")
for by in (0.0, 0.0, 0.0, 0.0):
    print(net(torch.ones(2), torch.tensor(by)).tolist())
print(len(net.seen))
