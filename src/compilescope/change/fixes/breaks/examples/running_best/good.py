import torch


@torch.compile(backend="eager")
@torch.no_grad()
def f(x):
    rows = [x.sin(), x.cos(), x * 0.5]
    best = rows[0]
    best_key = best.norm()
    for row in rows[1:]:
        this_key = row.norm()
        taken = this_key > best_key
        best = torch.where(taken, row, best)
        best_key = torch.where(taken, this_key, best_key)
    return best * 2


f(torch.ones(3))
