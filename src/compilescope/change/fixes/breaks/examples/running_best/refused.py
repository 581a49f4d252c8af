#: because: would be a copy of the tensor in the list
import torch


@torch.compile(backend="eager")
@torch.no_grad()
def f(x):
    rows = [x.sin(), x.cos(), x * 0.5]
    best = max(rows, key=lambda row: row.norm())
    return best, rows


f(torch.ones(3))
