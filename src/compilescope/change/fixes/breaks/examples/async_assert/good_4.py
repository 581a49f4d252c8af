import torch


def f(x, y):
    torch._assert_async(
        torch.stack([torch.isfinite(each).all() for each in (x, y)]).all(),
        "not finite",
    )
    return x + y


torch.compile(f, backend="eager")(torch.ones(3), torch.ones(3))
