#: because: unknown whether `EDGES` ascends
import numpy as np
import torch

EDGES = np.array([0.9, 0.3, 0.1])


def f(x):
    return torch.from_numpy(np.digitize(x.numpy(), EDGES)) * 2


torch.compile(f, backend="eager")(torch.tensor([0.1, 0.2, 0.9, 5.0]))
