#: note: What Dynamo can guard on stays an `if`.
import torch


class Net(torch.nn.Module):
    strict = True

    def forward(self, x):
        if self.training and not torch.isfinite(x).all(): raise RuntimeError(f"bad {tuple(x.shape)}")
        return x + 1


torch.compile(Net(), backend="eager")(torch.ones(3))
