import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(3, 3)
        self.deep = torch.nn.Linear(3, 3)

    def forward(self, x):
        # By the mean.
        if x.mean() > 0:
            # Much.
            h = self.wide(x)
            x = h.relu()
        else:
            x = self.deep(x)
        return x + 1


net = Net().requires_grad_(False)
torch.compile(net, backend="eager")(torch.ones(3))
