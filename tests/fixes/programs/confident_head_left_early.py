# ideal: masked-loop
# The first head that is sure enough answers; the number has a name, and no head has answered before.
import torch
from torch import nn


class EarlyExit(nn.Module):
    def __init__(self, dim=8, classes=3, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.heads = nn.ModuleList(nn.Linear(dim, classes) for _ in range(depth))

    def forward(self, x):
        for block, head in zip(self.blocks, self.heads):
            x = torch.relu(block(x))
            logits = head(x)
            sure = logits.softmax(-1).amax(-1).mean().item()
            if sure > 0.45:
                break
        return logits


torch.manual_seed(1)
net = torch.compile(EarlyExit().eval(), backend="eager")
with torch.no_grad():
    for scale in (0.1, 2.0, 8.0):
        print(f"{net(torch.randn(4, 8) * scale).sum().item():.4f}")
