# ideal: where-for-if
# An argument that is added to in place.
import torch


def collect(total, part):
    if part.norm() < 10:
        total += part
    return total * 2


add = torch.compile(collect, backend="eager")
total = torch.zeros(3)
for part in (torch.ones(3), torch.full((3,), 100.0), torch.ones(3)):
    out = add(total, part)
    print(total.tolist(), out.tolist())
