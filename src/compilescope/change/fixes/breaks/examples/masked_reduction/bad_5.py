#: note: As `mean` does it, the sum is one of 32 bits.
import torch


def f(x):
    return 2 * x[x > 0].mean()


torch.compile(f, backend="eager")(torch.full((1000,), 400.0, dtype=torch.float16))
