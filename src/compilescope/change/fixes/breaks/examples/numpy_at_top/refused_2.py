#: because: variable of the function
import numpy as np
import torch


def f(x, degree):
    return x * np.polyfit([0.0, 1.0], [0.0, 1.0], degree)[0]


torch.compile(f, backend="eager")(torch.ones(3), 1)
