#: because: does more than change each `g` in place
import torch


def f(grads, seen):
    if grads[0].sum() > 0:
        for g in grads:
            seen = seen + g.sum()
    return seen


torch.compile(f, backend="eager")([torch.ones(3), torch.ones(2)], torch.zeros(()))
