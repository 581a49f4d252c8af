# ideal: none
# trap: a tensor of the list is changed in place first
import torch


@torch.compile(backend="eager")
def mix(x, past):
    x += 1
    seen = torch.stack(past)
    return seen.sum() + x.sum()


past = []
for step in range(5):
    x = torch.full((3,), float(step))
    past.append(x)
    print(mix(x, past).item())
