# ideal: none
# trap: leaving early is on record, and the program prints it
import torch
from torch import nn


class EarlyExit(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth))
        self.seen = []

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
            if x.mean() > 0.3:
                self.seen.append("early")
                return x
        return x


torch.manual_seed(0)
net = EarlyExit().eval()
run = torch.compile(net, backend="eager")
with torch.inference_mode():
    for scale in (0.1, 3.0, 9.0):
        print(f"{run(torch.randn(2, 8) * scale).sum().item():.4f}", net.seen)
