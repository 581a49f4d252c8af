#: because: nothing here says how many classes there are
import torch
import torch.nn.functional as F


def f(table, labels, soft):
    hot = F.one_hot(labels).float()
    if soft:
        return hot @ table
    return hot.sum(0)


torch.compile(f, backend="eager")(torch.ones(4, 3), torch.tensor([0, 3, 1]), False)
