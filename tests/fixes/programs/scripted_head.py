# ideal: module-unscripted
import torch
import torch.nn as nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 2)

    def forward(self, x):
        return self.proj(x).sigmoid()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.head = torch.jit.script(Head())

    def forward(self, x):
        return self.head(self.body(x).relu())


torch.manual_seed(0)
net = torch.compile(Net(), backend="aot_eager")
print([round(v, 4) for v in net(torch.ones(3)).tolist()])
