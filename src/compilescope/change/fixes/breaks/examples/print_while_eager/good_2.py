import torch
from torch import nn

VERBOSE = True


class Net(nn.Module):
    def forward(self, x):
        if VERBOSE: torch.compiler.is_compiling() or print("mean", x.mean().item())
        return x * 2


torch.compile(Net(), backend="eager")(torch.ones(3))
