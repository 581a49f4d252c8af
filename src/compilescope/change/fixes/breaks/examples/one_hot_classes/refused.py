#: because: nothing here says how many classes there are
import torch
import torch.nn.functional as F


def f(logits, labels):
    # Where all labels are 0, the one column is broadcast.
    return (logits * F.one_hot(labels)).sum()


torch.compile(f, backend="eager")(torch.ones(3, 4), torch.tensor([0, 3, 1]))
