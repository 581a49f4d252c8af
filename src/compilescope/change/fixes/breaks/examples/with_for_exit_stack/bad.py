import contextlib

import torch


def f(x, fix):
    with contextlib.ExitStack() as stack:  # what it needs
        if fix:
            stack.enter_context(torch.no_grad())
        stack.enter_context(torch.autocast("cpu"))
        y = x.sin()  # the work
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3), True)
