"""Shows a loop over a ModuleList whose layers break: the loop runs eagerly, the layers compile."""

import torch

#: graphs 2

torch.manual_seed(0)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.linear(x)
        print("layer")  #: break "print(" Failed to trace builtin operator #: category logging
        return y.relu()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x):  #: eager Failed to trace builtin operator
        for layer in self.layers:
            x = layer(x)
        return x


with torch.no_grad():
    torch.compile(Net(), backend="eager")(torch.ones(2, 3))
