# ideal: searchsorted-for-digitize
# Times are put into buckets with NumPy.
import numpy as np
import torch
from torch import nn


class TimeBuckets(nn.Module):
    def __init__(self):
        super().__init__()
        self.edges = np.array([0.1, 0.3, 0.6, 0.9])
        self.embedding = nn.Embedding(5, 4)

    def forward(self, t):
        bucket = np.digitize(t.numpy(), self.edges)
        return self.embedding(torch.from_numpy(bucket)) * 2


torch.manual_seed(0)
net = torch.compile(TimeBuckets(), backend="eager")
for _ in range(2):
    print(f"{net(torch.rand(6)).sum().item():.4f}")
