"""Shows a module compiled for training and again for evaluation."""

import torch

#: graphs 2

torch.manual_seed(0)


class Net(torch.nn.Module):
    def forward(self, x):  #: recompile 1 "self.training" True -> False
        return torch.nn.functional.dropout(x, 0.5, self.training)


model = Net()
compiled = torch.compile(model, backend="eager")
compiled(torch.ones(3))
model.eval()
compiled(torch.ones(3))
