"""A loss in float64."""

#: cause float64
import torch
from gpt import DEVICE, STEPS, Net, batch, fast, optimizer

fast()
net = Net(layers=1).to(DEVICE)
opt = optimizer(net)
model = torch.compile(net)
weight = torch.ones(1024, 1024, device=DEVICE, dtype=torch.float64)


def distance(logits: torch.Tensor) -> torch.Tensor:
    return torch.matmul(logits.double(), weight).pow(2).mean()  #: here


for _ in range(STEPS):
    distance(model(batch())).backward()
    opt.step()
    opt.zero_grad()
