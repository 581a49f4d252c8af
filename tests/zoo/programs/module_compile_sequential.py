"""Shows a module of PyTorch's own that is compiled in place: only the user's module within is."""

import torch

#: graphs 1


class Scale(torch.nn.Module):
    def forward(self, x):
        return x * 2


model = torch.nn.Sequential(torch.nn.ReLU(), Scale())
model.compile(backend="eager")  #: eager torch-module
model(torch.ones(2, 3))
