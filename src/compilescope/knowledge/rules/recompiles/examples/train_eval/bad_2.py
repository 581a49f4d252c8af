import torch

net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout())
compiled = torch.compile(net, backend="eager")
compiled(torch.ones(3))
net.eval()
compiled(torch.ones(3))
