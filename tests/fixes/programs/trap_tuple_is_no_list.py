# ideal: none
# trap: a tuple means something else to the function than a list does
import torch


@torch.compile(backend="eager")
def combine(parts):
    if isinstance(parts, tuple):
        return parts[0] - parts[1]
    return parts[0] + parts[1]


a, b = torch.ones(3), torch.ones(3) * 2
for _ in range(2):
    print(combine([a, b]))
    print(combine((a, b)))
