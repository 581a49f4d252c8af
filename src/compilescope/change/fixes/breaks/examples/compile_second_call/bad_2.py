#: note: The flag is set where it is asked for, whatever its name.
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.hooked = False

    def halve(self, module, args, output):
        return output * 0.5

    def forward(self, x):
        if not self.hooked:
            self.lin.register_forward_hook(self.halve)
            self.hooked = True
        return self.lin(x)


net = torch.compile(Net(), backend="eager")
for _ in range(3):
    net(torch.ones(3))
