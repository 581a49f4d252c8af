# ideal: unbind-for-tolist
# One token of each sentence, at a position that the batch tells.
import torch
from torch import nn


class SpanPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x, positions):
        h = self.lin(x)
        rows = []
        for b, position in enumerate(positions.tolist()):
            rows.append(h[b, position])
        return torch.stack(rows)


torch.manual_seed(0)
pool = torch.compile(SpanPool(), backend="eager")
for i in range(4):
    g = torch.Generator().manual_seed(i)
    x, positions = torch.randn(3, 7, 8, generator=g), torch.randint(0, 7, (3,), generator=g)
    print(f"{pool(x, positions).sum().item():.4f}")
