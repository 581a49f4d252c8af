#: because: may return a different value
import numpy as np
import torch


def f(x):
    return torch.from_numpy(np.interp(x.numpy(), [0.0, 1.0], [0.0, 2.0]))


torch.compile(f, backend="eager")(torch.ones(3))
