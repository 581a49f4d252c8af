import contextlib

import torch


def f(x, fix):
    with (torch.no_grad() if fix else contextlib.nullcontext()), torch.autocast("cpu"):  # what it needs
        y = x.sin()  # the work
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3), True)
