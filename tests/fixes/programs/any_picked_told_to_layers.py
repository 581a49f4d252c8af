# ideal: flag-when-empty
# A flag of the encoder says whether any token is picked; each layer asks for it.
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.extra = nn.Linear(8, 8)

    def forward(self, x, mask, any_picked):
        y = self.proj(x)
        if any_picked:
            idx = mask.nonzero(as_tuple=True)
            rows = y[idx]
            y[idx] = self.extra(rows).softmax(-1).view(len(idx[0]), -1)
        return y.tanh()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, x, mask):
        picked = mask > 0
        any_picked = picked.any().item()
        for layer in self.layers:
            x = layer(x, picked, any_picked)
        return x


torch.manual_seed(0)
model = torch.compile(Encoder().eval(), backend="eager")
mask = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0]])
with torch.no_grad():
    for _ in range(2):
        print(f"{model(torch.randn(2, 4, 8), mask).sum().item():.4f}")
