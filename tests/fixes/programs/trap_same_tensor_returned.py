# ideal: none
# trap: where nothing is to be done, the caller gets its own tensor back
import torch


def ensure_positive(x):
    if x.min() < 0:
        x = x.abs()
    return x


g = torch.compile(ensure_positive, backend="eager")
for k in (1.0, -1.0):
    x = torch.full((2,), k)
    y = g(x)
    y.add_(1)
    print(x.tolist(), y.tolist())
