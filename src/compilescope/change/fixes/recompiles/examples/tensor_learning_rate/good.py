import torch
from torch import optim

model = torch.nn.Linear(3, 3)
optimizer = optim.SGD(model.parameters(), lr=torch.tensor(0.1, dtype=torch.float64))  # halved
step = torch.compile(optimizer.step, backend="eager")

for _ in range(3):
    model(torch.ones(2, 3)).sum().backward()
    step()
    optimizer.param_groups[0]["lr"] *= 0.5
