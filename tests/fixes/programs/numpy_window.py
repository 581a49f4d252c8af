# ideal: numpy-at-top
"""A fade-in that NumPy makes anew in every call."""

import numpy as np
import torch
from torch import nn

WIDTH = 4


class Fade(nn.Module):
    def forward(self, signal):
        ramp = torch.from_numpy(np.interp(np.arange(WIDTH), [0, WIDTH - 1], [0.0, 1.0])).float()
        return (signal * ramp).sum(-1)


fade = torch.compile(Fade(), backend="eager")
for level in (1.0, 2.0):
    print([round(v, 5) for v in fade(torch.full((2, 4), level)).tolist()])
