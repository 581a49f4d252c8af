"""Shows a small MLP without any trouble."""

import torch

#: graphs 1

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
compiled = torch.compile(model, backend="eager", fullgraph=True)
for _ in range(3):
    compiled(torch.randn(5, 4))
