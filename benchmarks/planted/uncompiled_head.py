"""Only the body is compiled; what follows it is not."""

#: cause uncompiled
import torch
from gpt import DEVICE, STEPS, Net, batch, fast

fast()
net = Net(layers=1).to(DEVICE).eval()
body = torch.compile(net)


def smooth(x: torch.Tensor) -> torch.Tensor:
    for _ in range(40):
        x = torch.softmax(torch.mul(x, 1.01), -1)  #: here
    return x


with torch.no_grad():
    for _ in range(STEPS):
        smooth(body(batch()))
