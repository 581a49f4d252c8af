"""Only the body is compiled: what follows is not, and its large table is transposed each time."""

#: causes uncompiled copy
import torch
from gpt import DEVICE, ON_GPU, Net, batch, fast
from turns import planted, run

UNCOMPILED, COPY = planted("uncompiled"), planted("copy")
fast()
net = Net(layers=1).to(DEVICE).eval()
body = torch.compile(net)
size = 12288 if ON_GPU else 2048
table = torch.randn(size, size, device=DEVICE)
turned = table.t().contiguous()
pick = torch.compile(lambda x: x[:64].sum(1))


def smooth(x: torch.Tensor) -> torch.Tensor:
    for _ in range(10):
        x = torch.sigmoid(torch.mul(x, 1.01))  #: here uncompiled
    return x


head = smooth if UNCOMPILED else torch.compile(smooth)


def step() -> None:
    with torch.no_grad():
        pick(table.t().contiguous() if COPY else turned)  #: here copy
        head(body(batch()))


run(step)
