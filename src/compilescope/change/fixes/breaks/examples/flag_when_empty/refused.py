#: because: the flag is more than a condition
import torch


@torch.compile(backend="eager")
def f(x, picked):
    any_picked = picked.any().item()
    if any_picked:
        x = x + x[picked].sum()
    return x, any_picked


f(torch.ones(4, 2), torch.tensor([True, False, True, False]))
