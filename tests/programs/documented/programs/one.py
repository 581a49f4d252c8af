"""One of the programs that a sweep runs."""

import torch


class Encoder(torch.nn.Linear):
    pass


print(Encoder(16, 16)(torch.ones(16, 16)).sum())
