"""`reduce-overhead`, and a length that is new in every step: each needs a CUDA graph of its own."""

#: cause cudagraphs
#: needs cuda
import torch
from gpt import WORDS, Net, fast

fast()
net = Net(width=64, layers=32).cuda().eval()


def step(ids: torch.Tensor) -> torch.Tensor:  #: here
    return net(ids)


model = torch.compile(step, mode="reduce-overhead", dynamic=True)
with torch.no_grad():
    for length in range(16, 106):
        model(torch.randint(0, WORDS, (1, length), device="cuda"))
