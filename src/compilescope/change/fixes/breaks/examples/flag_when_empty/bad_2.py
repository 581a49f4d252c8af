#: note: A condition asks for more than the flag: where `verbose` is true, its value shows.
import torch


def layer(x, picked, any_picked, verbose):
    if any_picked:
        idx = picked.nonzero(as_tuple=True)
        x[idx] = x[idx].sin().view(len(idx[0]), -1)
    return (x, idx) if any_picked and verbose else (x, None)


@torch.compile(backend="eager")
def f(x, picked, verbose=False):
    any_picked = bool(picked.sum() > 0)
    return layer(x + 1, picked, any_picked, verbose)


f(torch.ones(4, 2), torch.tensor([True, False, True, False]))
