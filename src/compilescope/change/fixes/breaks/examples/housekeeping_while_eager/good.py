import gc

import torch


def block(x):
    y = x.sin()
    if not torch.compiler.is_compiling():
        gc.collect()  # memory is short
    return y.cos()


def f(x):
    return block(x) * 2


torch.compile(f, backend="eager")(torch.ones(3))
