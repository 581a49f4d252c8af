#: because: computed twice
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        if not hasattr(self, "gain"):
            self.gain = torch.nn.Parameter(torch.ones(3))
        return x * self.gain


net = torch.compile(Net(), backend="eager")
for n in range(2):
    net(torch.rand(3))
