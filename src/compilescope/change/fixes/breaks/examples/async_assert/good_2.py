import torch


class Net(torch.nn.Module):
    strict = True

    def forward(self, x):
        if self.training:
            torch._assert_async(torch.isfinite(x).all(), f"bad {tuple(x.shape)}")
        return x + 1


torch.compile(Net(), backend="eager")(torch.ones(3))
