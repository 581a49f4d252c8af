#: because: changes something first
import torch


class Scaled(torch.nn.Module):
    def forward(self, x):
        x[0] = 0.0
        if x.sum() > 0:
            return x[:1] * 2
        return x.double()


torch.compile(Scaled(), backend="eager")(torch.ones(3))
