"""Shows a Sequential with one layer that breaks."""

import torch

#: graphs 1

torch.manual_seed(0)


class Noisy(torch.nn.Module):
    def forward(self, x):
        print("noisy")  #: break "print(" Failed to trace builtin operator #: category logging
        return x * 2


model = torch.nn.Sequential(torch.nn.Linear(3, 3), Noisy(), torch.nn.Linear(3, 3))
torch.compile(model, backend="eager")(torch.ones(2, 3))
