import warnings
import torch

def f(x):
    y = x + 1
    return y * 2

print(torch.compile(f, backend="eager")(torch.ones(3)))
warnings.warn("careful", stacklevel=1)
