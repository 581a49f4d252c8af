# ideal: where-for-buffer
# Other frequencies for long texts, made when the first long text comes.
import torch
from torch import nn


class Frequencies(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = torch.arange(1, size + 1) / size
        self.register_buffer("freq", self.first, persistent=False)

    def table(self, stretch):
        return self.first / stretch, stretch

    def update(self, positions, device):
        length = torch.max(positions) + 1
        if length > 8:
            if not hasattr(self, "stretched"):
                self.stretched, _ = self.table(4.0)
            self.register_buffer("freq", self.stretched, persistent=False)
        else:
            self.first = self.first.to(device)
            self.register_buffer("freq", self.first, persistent=False)

    def forward(self, positions):
        self.update(positions, positions.device)
        return torch.cos(positions[:, None] * self.freq)


layer = torch.compile(Frequencies(4), backend="eager")
for length in (4, 12, 6):
    print(layer(torch.arange(length)).sum().item())
