# ideal: none
# sound: value-read-first capture-shapes
# trap: under the flag, rows that are not picked change too
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 8)

    def forward(self, x, picked, any_picked):
        y = self.proj(x)
        if any_picked:
            y[picked] = y[picked].tanh()
            y = y * 0.5
        return y


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
with torch.no_grad():
    for mask in ([1, 0, 0, 1], [0, 1, 0, 0]):
        print(f"{model(torch.randn(4, 8), torch.tensor(mask)).sum().item():.4f}")
