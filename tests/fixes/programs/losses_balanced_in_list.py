# ideal: where-for-if
import torch
from torch import nn


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))

    def forward(self, x, targets):
        pairs = zip(self.heads, targets)
        losses = [(head(x).squeeze(-1) - y).pow(2).mean() for head, y in pairs]
        total = sum(each.detach() for each in losses)
        if total > 1e-8:
            losses = [each / total for each in losses]
        return sum(losses)


model = Tasks()
step = torch.compile(model, backend="aot_eager")
for scale in (1.0, 0.0, 1.0):
    x = torch.randn(3, 4) * scale
    with torch.no_grad():
        targets = [head(x).squeeze(-1) + scale for head in model.heads]
    loss = step(x, targets)
    loss.backward()
    print(round(loss.item(), 4), round(model.heads[0].weight.grad.sum().item(), 4))
