# ideal: where-for-if
# Any of several outputs is NaN: all are cleaned, and read one by one.
import torch
import torch.nn as nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 8)

    def forward(self, x):
        outs = [self.a(x), self.b(x)]
        if any(torch.isnan(o).any() for o in outs):
            outs = [torch.nan_to_num(o) for o in outs]
        return outs[0] + outs[1]


net = torch.compile(Net(), backend="eager")
print(net(torch.randn(4, 8)).sum().item())
bad = torch.randn(4, 8)
bad[0, 0] = float("nan")
print(net(bad).sum().item())
