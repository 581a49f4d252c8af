# ideal: threshold-first
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, depth=3, layerdrop=0.0):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])
        self.layerdrop = layerdrop

    def forward(self, hidden):
        for layer in self.layers:
            # Stochastic depth
            if self.training:
                probability = torch.rand([])
                if probability < self.layerdrop:
                    continue
            hidden = layer(hidden)
        return nn.functional.dropout(hidden, 0.1, self.training)


torch.manual_seed(0)
encoder = torch.compile(Encoder().train(), backend="eager")
loss = encoder(torch.ones(2, 4)).sum()
loss.backward()
print(f"{loss.item():.5f}")
