#: note: the cache is kept by the module, where no call can mark it
import torch
from torch import nn


class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = None

    def forward(self, x):
        self.seen = x if self.seen is None else torch.cat([self.seen, x])
        return self.seen.sum() + x.shape[0]


net = Recall()
recall = torch.compile(net, backend="eager", dynamic=False)
for _ in range(2):
    net.seen = None
    for _ in range(5):
        recall(torch.ones(2, 3))
