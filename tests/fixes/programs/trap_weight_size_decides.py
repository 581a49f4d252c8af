# ideal: none
# trap: Python code counts to the size of the weight, so it is a constant whatever flag is set
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5, 4))

    def forward(self, x):
        total = x.new_zeros(())
        for row in range(self.weight.shape[0]):
            total = total + (self.weight[row] * x).sum().tanh() * row
        return total


torch.manual_seed(0)
model = Scorer()
scorer = torch.compile(model, backend="eager")
for rows in (5, 6, 7):
    model.weight = nn.Parameter(torch.full((rows, 4), 0.1))
    print(rows, f"{scorer(torch.ones(4)).item():.5f}")
