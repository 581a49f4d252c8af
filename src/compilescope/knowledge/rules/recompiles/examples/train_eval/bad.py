import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5, self.training)

net = Net()
compiled = torch.compile(net, backend="eager")
compiled(torch.ones(3))
net.eval()
compiled(torch.ones(3))
