# ideal: any
# trap: dividing whole numbers by zero raises; the side that is not taken must not
import torch


def share(total, parts):
    if (parts > 0).all():
        each = total // parts
    else:
        each = torch.zeros_like(total)
    return each + 1


f = torch.compile(share, backend="eager")
total = torch.tensor([10, 20])
for parts in (torch.tensor([3, 4]), torch.tensor([0, 4])):
    print(f(total, parts).tolist())
