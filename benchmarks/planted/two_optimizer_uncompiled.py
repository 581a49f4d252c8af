"""Training of an MLP: a loss of many operators, and Adam, parameter by parameter."""

#: causes optimizer uncompiled
import torch
from gpt import DEVICE, ON_GPU, fast
from torch import nn
from turns import planted, run

OPTIMIZER, UNCOMPILED = planted("optimizer"), planted("uncompiled")
fast()
width = 512 if ON_GPU else 128
net = nn.Sequential(*(nn.Linear(width, width) for _ in range(24))).to(DEVICE)
fused = {"foreach": False} if OPTIMIZER else {"fused": True}
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, **fused)
model = torch.compile(net)
x = torch.randn(256, width, device=DEVICE)


def spread(y: torch.Tensor) -> torch.Tensor:
    total = y.new_zeros(())
    for power in range(1, 9):
        shifted = torch.tanh(torch.mul(y, 1.0 / power))  #: here uncompiled
        total = torch.add(total, torch.sigmoid(shifted).mean())  #: here uncompiled
    return total


loss_of = spread if UNCOMPILED else torch.compile(spread)


def step() -> None:
    loss_of(model(x)).backward()
    opt.step()
    opt.zero_grad()


run(step)
