import numpy as np
import torch

KNOTS = [0.0, 1.0, 2.0]


# The best line.
def f(x):
    slope = torch.from_numpy(np.polyfit(KNOTS, [0.0, 1.0, 4.0], 1))  # of two numbers
    return x * slope[0]


torch.compile(f, backend="eager")(torch.ones(3))
