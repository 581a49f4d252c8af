#: because: without its `grad_fn`
import torch


def f(x):
    y = x * 2
    print("mean", y.mean())
    return y


torch.compile(f, backend="eager")(torch.ones(3, requires_grad=True))
