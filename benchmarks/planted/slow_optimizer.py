"""An optimizer that loops over hundreds of parameters."""

#: cause optimizer
import torch
from gpt import DEVICE, STEPS, Training, batch, fast
from torch import nn

fast()


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1024, 32)
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(100))
        self.head = nn.Linear(32, 1024)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        return self.head(x + sum(layer.weight.sum() + layer.bias.sum() for layer in self.layers))


net = Deep().to(DEVICE)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=False)
model = torch.compile(Training(net), mode="reduce-overhead" if DEVICE == "cuda" else None)
ids = batch(1)
for _ in range(STEPS):
    model(ids).backward()
    opt.step()
    opt.zero_grad()
