#: changes: the first call evaluates too
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, self.training) + 1

net = Net().eval()
compiled = torch.compile(net, backend="eager")
compiled(torch.ones(3))
compiled(torch.ones(3))
