# ideal: none
# trap: only the learning rate may be a tensor; the first step makes the buffers anyway
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
step = torch.compile(opt.step, backend="aot_eager")

for n in range(4):
    opt.param_groups[0]["momentum"] = 0.5 + 0.1 * n
    model(torch.ones(2, 4)).sum().backward()
    step()
    opt.zero_grad()
print(f"{sum(p.sum().item() for p in model.parameters()):.5f}")
