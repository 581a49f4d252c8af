# ideal: none
# trap: the flag is taken back, so that the hook is installed in later calls, too
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


torch.manual_seed(0)
net = Net()
run = torch.compile(net, backend="eager")
with torch.no_grad():
    for k in range(6):
        if k % 2 == 0:
            net.hooked = False
        print(f"{run(torch.full((2, 4), float(k))).sum().item():.5f}")
