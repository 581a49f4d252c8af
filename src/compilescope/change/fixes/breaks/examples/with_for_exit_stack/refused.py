#: because: also used later
import contextlib

import torch


def f(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y = x.sin()
        stack.callback(lambda: None)
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
