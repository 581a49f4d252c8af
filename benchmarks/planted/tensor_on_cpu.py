"""`reduce-overhead`, and one small tensor on the CPU."""

#: cause cudagraphs
#: needs cuda
import torch
from gpt import Net, batch, fast

fast()
net = Net(width=64, layers=32).cuda().eval()
scale = torch.ones(4)


def step(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return net(ids), scale * 2  #: here


model = torch.compile(step, mode="reduce-overhead")
ids = batch(1)
with torch.no_grad():
    for _ in range(60):
        model(ids)
