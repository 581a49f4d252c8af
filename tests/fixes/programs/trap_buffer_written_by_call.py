# ideal: none
# trap: the buffer is empty, then has one row: sizes that are compiled on their own
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(0, 4))

    def forward(self, x):
        self.rows = torch.cat([self.rows, x.mean(0, keepdim=True)])
        return (self.rows @ x.T).sum()


torch.manual_seed(0)
model = Memory()
model.compile(backend="eager", dynamic=True)
for n in range(4):
    print(n, f"{model(torch.full((2, 4), 1.0 + n)).item():.3f}", len(model.rows))
