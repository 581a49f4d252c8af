# ideal: none
# trap: layers after the break count their calls, and would be called
import torch
from torch import nn


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return torch.tanh(self.linear(x)) * 0.1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Counted() for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            new = layer(x)
            if torch.allclose(new, x, atol=0.1):
                break
            x = new
        return x


torch.manual_seed(0)
model = Net()
net = torch.compile(model, backend="eager")
with torch.no_grad():
    for i in range(3):
        net(torch.randn(3, 8) * i)
print([layer.calls.item() for layer in model.layers])
