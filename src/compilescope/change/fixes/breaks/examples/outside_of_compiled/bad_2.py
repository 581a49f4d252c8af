import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = None

    def forward(self, x):
        if self.weight is None:
            self.weight = torch.nn.Parameter(torch.ones(x.shape[-1]))

        y = x * self.weight
        return y.relu()


torch.compile(Scale(), backend="eager")(torch.ones(3))
