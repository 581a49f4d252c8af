# ideal: none
# trap: a later test would raise, and an earlier one keeps Python from coming to it
import torch


@torch.compile(backend="eager")
def f(table, rows, x):
    if any(table.index_select(0, row).sum() > 0 for row in rows):
        x = x * 2
    return x + 1


table = torch.ones(3, 2)
rows = [torch.tensor([1]), torch.tensor([7])]
print(f(table, rows, torch.ones(3)).tolist())
