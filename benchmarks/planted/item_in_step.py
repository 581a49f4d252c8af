"""The loss is read in every step of a model that the device is quick with."""

#: cause sync
#: needs cuda
import torch
from gpt import Net, Training, batch, fast

fast()
net = Net(width=4096, layers=2).cuda()
model = torch.compile(Training(net), mode="reduce-overhead")
ids = batch(8)
for _ in range(60):
    with torch.no_grad():
        loss = model(ids)
    total = loss.item()  #: here
