"""Shows a module compiled in place by its own method."""

import torch

#: graphs 2

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.linear(x)
        print("forward")  #: break "print(" Failed to trace builtin operator #: category logging
        return y.relu()


model = Net()
model.compile(backend="eager")
model(torch.ones(2, 3))
