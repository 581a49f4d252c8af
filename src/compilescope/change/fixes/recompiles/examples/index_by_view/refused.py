#: because: changed in place later
import torch


@torch.compile(backend="eager")
def visit(counts, n):
    row = counts[n]
    row.add_(1)


for n in (2, 3, 4):
    visit(torch.ones(5, 3), torch.tensor(n))
