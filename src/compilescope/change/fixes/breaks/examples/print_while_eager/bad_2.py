#: note: The break is `.item()`, which only the print needs.
import torch
from torch import nn

VERBOSE = True


class Net(nn.Module):
    def forward(self, x):
        if VERBOSE: print("mean", x.mean().item())
        return x * 2


torch.compile(Net(), backend="eager")(torch.ones(3))
