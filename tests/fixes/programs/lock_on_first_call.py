# ideal: compile-second-call
import threading

import torch

_LOCK = threading.Lock()


class Lookup(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self._installed = False

    def _install(self):
        if self._installed:
            return
        with _LOCK:
            self.table = torch.arange(float(self.size)).sqrt()
            self._installed = True

    def forward(self, x):
        self._install()
        return x + self.table


lookup = Lookup(4)
fast = torch.compile(lookup, backend="eager")
for n in range(4):
    print(fast(torch.ones(4) * n).sum().item())
