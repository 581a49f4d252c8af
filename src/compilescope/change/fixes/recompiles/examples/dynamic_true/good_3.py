import torch

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
step = torch.compile(optimizer.step, backend="eager", dynamic=True)

for count in range(3):
    optimizer.param_groups[0]["lr"] = 0.1 / (count + 1)
    model(torch.ones(2, 3)).sum().backward()
    step()
