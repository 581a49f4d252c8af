# ideal: any
# trap: the copy of a leaf that learns has a gradient of its own; a detached clone has none
import copy

import torch

w = torch.ones(3, requires_grad=True)


def f(x):
    mine = copy.deepcopy(w)
    return (x * mine).sum()


out = torch.compile(f, backend="eager")(torch.ones(3))
print(out.item(), out.requires_grad)
