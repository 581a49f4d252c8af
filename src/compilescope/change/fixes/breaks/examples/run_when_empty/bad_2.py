#: note: The numbers of the rows, where there are any.
import torch


@torch.compile(backend="eager")
def f(x, kinds):
    rows = torch.where(kinds == 2)[0]
    if len(rows) > 0:
        x.index_add_(0, rows, x[rows].sin())
    return x + 1


f(torch.ones(4, 2), torch.tensor([0, 2, 2, 0]))
