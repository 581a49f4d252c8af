# ideal: none
# sound: dynamic-true
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
opt = torch.optim.Adam(model.parameters(), lr=0.1)
step = torch.compile(opt.step, backend="aot_eager")

for n in range(4):
    for group in opt.param_groups:
        group["lr"] = 0.1 / (n + 1)
    model(torch.ones(2, 4)).sum().backward()
    step()
    opt.zero_grad()
    print(n, opt.param_groups[0]["lr"])
print(f"{sum(p.sum().item() for p in model.parameters()):.5f}")
