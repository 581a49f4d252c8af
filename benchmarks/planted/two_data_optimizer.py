"""Training from a slow `DataLoader`, with an optimizer that loops over hundreds of parameters."""

#: causes data optimizer
import time

import torch
from gpt import DEVICE, Training, fast
from torch import nn
from torch.utils.data import DataLoader, Dataset
from turns import planted, run

DATA, OPTIMIZER = planted("data"), planted("optimizer")
fast()


class Texts(Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> torch.Tensor:
        if DATA:
            time.sleep(0.002)
        return torch.full((16,), index % 7)


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1024, 32)
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(100))
        self.head = nn.Linear(32, 1024)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        return self.head(x + sum(layer.weight.sum() + layer.bias.sum() for layer in self.layers))


def batches():
    while True:
        yield from DataLoader(Texts(), batch_size=4)


net = Deep().to(DEVICE)
fused = {"foreach": False} if OPTIMIZER else {"fused": True}
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, **fused)
model = torch.compile(Training(net))
texts = batches()


def step() -> None:
    model(next(texts).to(DEVICE)).backward()
    opt.step()
    opt.zero_grad()


run(step)
