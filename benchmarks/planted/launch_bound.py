"""A deep and narrow model: the device waits for launches."""

#: cause launches
#: needs cuda
import torch
from gpt import Net, batch, fast

fast()
net = Net(width=64, layers=32).cuda().eval()
model = torch.compile(net)
ids = batch(1)
with torch.no_grad():
    for _ in range(60):
        model(ids)
