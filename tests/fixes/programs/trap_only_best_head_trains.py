# ideal: none
# sound: capture-scalars
# trap: only the head that was taken has a gradient; weight decay leaves the others alone
import torch
from torch import nn


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(6, 3) for _ in range(3))

    def forward(self, x, y):
        losses = [(head(x) - y).pow(2).mean() for head in self.heads]
        return min(losses, key=lambda loss: loss.item())


torch.manual_seed(0)
model = Ensemble()
net = torch.compile(model, backend="eager")
optimizer = torch.optim.AdamW(model.parameters(), 0.1, weight_decay=0.5)
for i in range(4):
    loss = net(torch.randn(2, 6), torch.randn(2, 3))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
