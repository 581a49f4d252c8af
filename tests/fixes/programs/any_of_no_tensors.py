# ideal: where-for-if
# The list is empty in one call: `any` of nothing is False, and there is nothing to stack.
import torch


@torch.compile(backend="eager")
def mix(x, extras):
    y = x.cos()
    if any(e.min() < 0 for e in extras):
        y = y * 0.5
    return y + len(extras)


x = torch.arange(3.0)
print(mix(x, [torch.ones(2), -torch.ones(2)]).tolist())
print(mix(x, []).tolist())
print(mix(x, [torch.ones(2), torch.ones(2)]).tolist())
