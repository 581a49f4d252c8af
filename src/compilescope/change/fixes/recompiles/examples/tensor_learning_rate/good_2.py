import torch

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), torch.tensor(0.4, dtype=torch.float64))
step = torch.compile(optimizer.step, backend="eager")

for count in range(3):
    model(torch.ones(2, 3)).sum().backward()
    step()
    for group in optimizer.param_groups:
        group["lr"].fill_(group["lr"].item() * 0.5 + 0.1 / (count + 1))
    print(f"{optimizer.param_groups[0]['lr'].item():.3f}")
