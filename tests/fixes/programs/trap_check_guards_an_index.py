# ideal: none
# trap: what is returned raises another error, unless the check has come before it
import torch


class OutOfTable(Exception):
    pass


@torch.compile(backend="eager")
def rows(table, at):
    scaled = table * 2
    if (at >= 3).any():
        raise OutOfTable("no such row")
    return scaled[at]


for row in (1, 5):
    try:
        print(rows(torch.arange(6.0).view(3, 2), torch.tensor([row])).tolist())
    except OutOfTable as error:
        print("skipped:", error)
