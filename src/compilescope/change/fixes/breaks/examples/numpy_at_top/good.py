import numpy as np
import torch

KNOTS = [0.0, 1.0, 2.0]

POLYFIT_IN_F = np.polyfit(KNOTS, [0.0, 1.0, 4.0], 1)


# The best line.
def f(x):
    slope = torch.from_numpy(POLYFIT_IN_F.copy())  # of two numbers
    return x * slope[0]


torch.compile(f, backend="eager")(torch.ones(3))
