import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 5))

    def forward(self, x):
        return x @ self.weight


model = Classifier()
compiled = torch.compile(model, backend="eager")
for classes in (5, 7, 9):
    model.weight = nn.Parameter(torch.ones(4, classes))
    compiled(torch.ones(2, 4))
