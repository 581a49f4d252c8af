"""Large products of float32 matrices with TF32 left off."""

#: cause tf32
#: needs cuda
import torch
from gpt import Net, Training, batch, optimizer

net = Net().cuda()
opt = optimizer(net)
model = torch.compile(Training(net))
for _ in range(40):
    model(batch()).backward()
    opt.step()
    opt.zero_grad()
