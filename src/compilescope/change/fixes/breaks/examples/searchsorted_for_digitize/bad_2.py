import numpy as np
import torch


def f(x):
    edges = np.linspace(0.0, 1.0, 5)
    return torch.from_numpy(np.digitize(x.numpy(), bins=edges, right=True)) * 2


torch.compile(f, backend="eager")(torch.tensor([0.25, 0.2, 0.9, 5.0]))
