import numpy as np
import torch

def f(x):
    weights = np.polyfit([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], 1)
    return x * torch.from_numpy(weights)[0]

print(torch.compile(f, backend="eager")(torch.ones(3)))
