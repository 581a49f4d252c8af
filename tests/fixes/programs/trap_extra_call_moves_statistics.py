# ideal: none
# trap: an eager call before the loop would update the running statistics once more
import threading

import torch
from torch import nn

_lock = threading.Lock()


def prepare(module, found):
    for child in module.children():
        prepare(child, found)
    found.append(type(module).__name__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.parts = []

    def forward(self, x):
        if not self.parts:
            with _lock:
                prepare(self, self.parts)
        return self.norm(self.linear(x)) + len(self.parts)


torch.manual_seed(0)
net = Net()
step = torch.compile(net, backend="eager")
x = torch.linspace(-1, 1, 12).view(3, 4)
for _ in range(3):
    step(x).sum().backward()
net.eval()
print(f"{net(x).sum().item():.5f}", int(net.norm.num_batches_tracked))
