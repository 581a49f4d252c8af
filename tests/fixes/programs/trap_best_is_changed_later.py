# ideal: none
# trap: the best is one of the list itself, and the caller changes it in place
import torch


@torch.compile(backend="eager")
def pick(rows):
    best = max(rows, key=lambda row: row.sum())
    return best


rows = [torch.ones(2), torch.full((2,), 3.0), torch.zeros(2)]
pick(rows).add_(10)
print([row.tolist() for row in rows])
