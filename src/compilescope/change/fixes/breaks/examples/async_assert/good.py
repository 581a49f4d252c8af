import torch


def f(x):
    y = x * 2
    # Only what is positive.
    # tell them
    torch._assert_async(~(y < 0).any(), "negative")
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
