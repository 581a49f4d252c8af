# ideal: where-for-if
# A row is written, or not; who called sees it.
import torch


def mark(table, value):
    if value.sum() > 0:
        table[0] = value
        table[:, -1] += 1
    return table.sum()


write = torch.compile(mark, backend="eager")
page = torch.zeros(2, 3)
for v in (torch.ones(3), -torch.ones(3)):
    print(write(page, v).item(), page.tolist())
