#: because: unknown whether `edges` ascends
import numpy as np
import torch


def f(x, edges):
    return torch.from_numpy(np.digitize(x.numpy(), edges)) * 2


torch.compile(f, backend="eager")(torch.tensor([0.1, 0.2, 0.9, 5.0]), np.array([0.1, 0.5]))
