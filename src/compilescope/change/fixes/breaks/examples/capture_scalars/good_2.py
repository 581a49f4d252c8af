import torch
from torch import nn

torch._dynamo.config.capture_scalar_outputs = True


class Net(nn.Module):
    def forward(self, x, lengths):
        longest = int(lengths.max())
        return x[:, :longest].sum(1)


net = torch.compile(Net(), backend="eager")
net(torch.ones(2, 5), torch.tensor([3, 4]))
