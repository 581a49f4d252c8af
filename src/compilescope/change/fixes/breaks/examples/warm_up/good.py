import functools

import torch


class Table(torch.nn.Module):
    @functools.cached_property
    def rows(self):
        return torch.arange(3.0)

    def forward(self, x):
        return x + self.rows


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = Table()

    def forward(self, x):
        return self.table(x).relu() * 2


net = torch.compile(Net(), backend="eager")
x = torch.ones(3)
with torch.compiler.set_stance("force_eager"):
    net(x)
out = net(x)  # the first
print(out)
