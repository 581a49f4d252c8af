"""`reduce-overhead` with an input changed in place, and the answer read by the host."""

#: causes cudagraphs sync
#: needs cuda
import torch
from gpt import Net, batch, fast
from turns import planted, run

CUDAGRAPHS, SYNC = planted("cudagraphs"), planted("sync")
fast()
net = Net(width=256, layers=24).cuda().eval()


def answer(ids: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    if CUDAGRAPHS:
        count.add_(1)  #: here cudagraphs
    return net(ids) + count


model = torch.compile(answer, mode="reduce-overhead")
ids, count = batch(4), torch.zeros((), device="cuda")


def step() -> None:
    with torch.no_grad():
        logits = model(ids, count)
    if SYNC:
        logits[0, -1].argmax().item()  #: here sync


run(step, 60)
