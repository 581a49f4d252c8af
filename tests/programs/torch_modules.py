"""Modules of torch's own, called as they are: no function of the user's is in any graph."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
other = nn.Linear(4, 3)
for rows in (2, 3):
    model(torch.ones(rows, 4))
other(torch.ones(2, 4))
print("done")
