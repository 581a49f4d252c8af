"""Shows a break inside a property."""

import torch

#: graphs 0


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(2.0))

    @property
    def scale(self):
        return self.factor.item()  #: break "self.factor.item()" Unsupported Tensor.item() call with capture_scalar_outputs=False #: category scalar-extraction

    def forward(self, x):  #: eager Unsupported Tensor.item() call with capture_scalar_outputs=False
        y = x + 1
        return y * self.scale


torch.compile(Net(), backend="eager")(torch.ones(3))
