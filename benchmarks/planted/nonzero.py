"""A mask is made into indices in every step: the host must know how many."""

#: cause sync
#: needs cuda
import torch
from gpt import Net, batch, fast

fast()
net = Net(width=4096, layers=2).cuda().eval()
model = torch.compile(net, mode="reduce-overhead")
ids = batch(8)
with torch.no_grad():
    for _ in range(60):
        rare = (model(ids)[0] > 3).nonzero()  #: here
