"""A wait for the device around every layer, as code that times its layers leaves behind."""

#: cause sync
#: needs cuda
import torch
from gpt import Net, batch, fast

fast()
net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
blocks = [torch.compile(block) for block in net.blocks]
ids = batch()
for _ in range(60):
    x = net.embedding(ids)
    for block in blocks:
        x = block(x)
        torch.cuda.synchronize()  #: here
    x.float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
