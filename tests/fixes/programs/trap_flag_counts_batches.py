# ideal: none
# sound: capture-scalars capture-shapes
# trap: batches with picked rows are counted under the flag
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.register_buffer("batches", torch.zeros(()))

    def write(self, x, picked, any_picked):
        if any_picked:
            self.batches += 1
            x[picked] = x[picked].tanh()
        return x

    def forward(self, x, scale):
        x = self.proj(x) * scale
        picked = x.sum(-1) > 0
        any_picked = picked.any().item()
        return self.write(x, picked, any_picked)


torch.manual_seed(0)
pool = Pool().eval()
model = torch.compile(pool, backend="eager")
with torch.no_grad():
    for scale in (1.0, -1.0, 0.0):
        print(f"{model(torch.randn(4, 8), torch.tensor(scale)).sum().item():.4f}")
print(pool.batches)
