# ideal: value-read-first
# trap: a Python number on the module counts the bad batches
import torch


class Guard(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bad = 0

    def forward(self, x):
        if torch.isnan(x).any():
            self.bad += 1
            x = torch.nan_to_num(x)
        return x * 2


guard = Guard()
fast = torch.compile(guard, backend="eager")
for k in (1.0, float("nan"), 2.0):
    fast(torch.full((2,), k))
print(guard.bad)
