# ideal: none
# trap: the row is a view that is written to; a gathered copy would lose what is written
import torch


@torch.compile(backend="eager")
def visit(counts, place):
    row = counts[place]
    row.add_(1)
    return row.sum()


counts = torch.zeros(4, 3)
for place in torch.tensor([3, 1, 2, 3]):
    visit(counts, place)
print(counts)
