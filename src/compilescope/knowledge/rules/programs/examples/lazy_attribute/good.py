import torch


class Positions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(x.shape[-1]).float()
        return x + self.scale * self.table


torch.manual_seed(0)
layer = Positions()
layer(torch.ones(2, 4))
fast = torch.compile(layer, backend="eager")
for _ in range(3):
    print(round(fast(torch.ones(2, 4)).sum().item(), 3))
