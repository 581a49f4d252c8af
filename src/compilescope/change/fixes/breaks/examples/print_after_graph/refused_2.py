#: because: in place
import torch


def f(x):
    y = x.clone()
    print("step", y)
    y.mul_(2)
    return y


torch.compile(f, backend="eager")(torch.ones(3))
