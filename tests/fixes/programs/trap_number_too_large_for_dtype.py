# ideal: value-read-first
# trap: the number does not fit into the other side's dtype
import torch


def f(x, wide):
    y = x
    if x.sum() > 4:
        y = 1000
    return wide + y


g = torch.compile(f, backend="eager")
wide = torch.zeros(2, dtype=torch.int64)
for k in (1, 5):
    print(g(torch.full((2,), k, dtype=torch.int8), wide).tolist())
