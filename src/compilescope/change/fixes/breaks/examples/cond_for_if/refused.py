#: because: zero gradients
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.near = torch.nn.Linear(3, 3)
        self.far = torch.nn.Linear(3, 3)

    def forward(self, x):
        if x.mean() > 0:
            y = self.near(x)
        else:
            y = self.far(x)
        return y * 2


torch.compile(Net(), backend="eager")(torch.ones(3)).sum().backward()
