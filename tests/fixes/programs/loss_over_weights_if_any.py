# ideal: where-for-if
# trap: the gradient of what is divided by zero is NaN, taken or not
import torch
from torch import nn


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(4, 1)

    def forward(self, x, y, weights):
        errors = (self.head(x).squeeze(-1) - y).pow(2) * weights
        loss = errors.sum()
        total = weights.sum()
        if total > 0:
            loss = loss / total
        return loss


model = Weighted()
step = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for seen in (1, 0, 1):
    weights = torch.tensor([1.0, 0.0, 2.0]) * seen
    loss = step(torch.randn(3, 4), torch.randn(3), weights)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(round(loss.item(), 4), [round(v, 4) for v in model.head.weight[0].tolist()])
