"""A loss of many operators outside of compiled code."""

#: cause uncompiled
import torch
from gpt import DEVICE, STEPS, Net, batch, fast, optimizer

fast()
net = Net(layers=1).to(DEVICE)
opt = optimizer(net)
model = torch.compile(net)


def loss_of(logits: torch.Tensor) -> torch.Tensor:
    total = logits.new_zeros(())
    for power in range(1, 30):
        shifted = torch.tanh(torch.mul(logits, 1.0 / power))  #: here
        total = torch.add(total, torch.sigmoid(shifted).mean())  #: here
    return total


for _ in range(STEPS):
    loss_of(model(batch())).backward()
    opt.step()
    opt.zero_grad()
