#: because: may decide what it does
import threading

import torch

lock = threading.Lock()


class Net(torch.nn.Module):
    ready = False

    def forward(self, x):
        if not self.ready:
            with lock:
                self.ready = True
        return x.relu() * 2


net = torch.compile(Net(), backend="eager")
x = torch.ones(3)
for _ in range(2):
    with torch.no_grad():
        print(net(x))
