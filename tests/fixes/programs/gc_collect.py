# ideal: housekeeping-while-eager
import gc

import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x).relu()
        gc.collect()  # memory was short once
        return x + y


torch.manual_seed(0)
net = torch.compile(nn.Sequential(Block(), Block()), backend="aot_eager")
print(f"{net(torch.ones(2, 4)).sum().item():.4f}")
