"""Shows a module's float attribute that is changed between calls."""

import torch

#: graphs 2


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def forward(self, x):  #: recompile 1 "self.scale" 2.0 -> 3.0
        return x * self.scale


model = Scale()
compiled = torch.compile(model, backend="eager")
compiled(torch.ones(3))
model.scale = 3.0
compiled(torch.ones(3))
