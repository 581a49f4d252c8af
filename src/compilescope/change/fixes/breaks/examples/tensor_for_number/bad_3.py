#: note: The number was that of before the change.
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        y = (x * 2 - float(self.scale)).relu()
        self.scale += 1
        return y


torch.compile(Net(), backend="eager")(torch.ones(3))
