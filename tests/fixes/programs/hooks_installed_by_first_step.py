# ideal: warm-up
import threading

import torch
from torch import nn

_lock = threading.Lock()


def install(module, kept):
    for child in module.children():
        install(child, kept)
    if isinstance(module, nn.Linear):
        module.register_forward_hook(lambda module, args, output: kept.append(output.shape[-1]))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4)
        self.widths = []
        self.installed = False

    def forward(self, x):
        if not self.installed:
            with _lock:
                install(self, self.widths)
                self.installed = True
        self.widths.clear()
        out = self.second(self.first(x).relu())
        return out * len(self.widths)


torch.manual_seed(0)
net = Net()
step = torch.compile(net, backend="eager")
x = torch.linspace(-1, 1, 12).view(3, 4)
for _ in range(3):
    loss = step(x).square().mean()
    loss.backward()
    net.zero_grad()
    print(f"{loss.item():.5f}")
