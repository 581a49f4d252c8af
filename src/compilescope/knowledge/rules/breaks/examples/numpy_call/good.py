import numpy as np
import torch

def f(x, weights):
    return x * weights[0]

weights = torch.from_numpy(np.polyfit([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], 1))
print(torch.compile(f, backend="eager")(torch.ones(3), weights))
