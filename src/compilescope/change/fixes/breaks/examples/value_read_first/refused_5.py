#: because: each number that is read here
import torch


def f(x, lengths):
    for _ in range(int(lengths.max())):
        x = x * 0.5 + x.mean()
    return x


torch.compile(f, backend="eager")(torch.ones(3), torch.tensor([1, 2]))
