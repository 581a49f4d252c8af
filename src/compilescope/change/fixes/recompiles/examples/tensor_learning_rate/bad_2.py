import torch

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.4)
step = torch.compile(optimizer.step, backend="eager")

for count in range(3):
    model(torch.ones(2, 3)).sum().backward()
    step()
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * 0.5 + 0.1 / (count + 1)
    print(f"{optimizer.param_groups[0]['lr']:.3f}")
