#: because: where `verbose` is true, the value of the flag may show
import torch


def layer(x, picked, any_picked, verbose):
    if any_picked and verbose:
        return x + x[picked].sum()
    return x * 2


@torch.compile(backend="eager")
def f(x, picked, level):
    any_picked = picked.any().item()
    return layer(x + 1, picked, any_picked, level > 1)


f(torch.ones(4, 2), torch.tensor([True, False, True, False]), 2)
