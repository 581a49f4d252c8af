# ideal: none
# trap: the second net is called once, so that nothing of it would be compiled
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.hooked = False

    def halve(self, module, args, output):
        return output * 0.5

    def forward(self, x):
        if not self.hooked:
            self.lin.register_forward_hook(self.halve)
            self.hooked = True
        return self.lin(x)


@torch.compile(backend="eager")
def summarize(x):
    return x.sin().mean() + x.cos().square().sum()


torch.manual_seed(0)
net = torch.compile(Net(), backend="eager")
with torch.no_grad():
    parts = [net(torch.full((2, 4), float(k))) for k in range(3)]
    print(f"{summarize(torch.cat(parts)).item():.5f}")
