import torch

for size in (3, 4, 5):
    torch.compile(torch.nn.Linear(size, 2), backend="eager")(torch.ones(size))
