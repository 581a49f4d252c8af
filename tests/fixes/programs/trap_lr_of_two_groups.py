# ideal: none
# trap: both groups would hold one tensor, which is halved for each of them
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
groups = [dict(params=list(layer.parameters())) for layer in model]
opt = torch.optim.SGD(groups, lr=0.4, momentum=0.9)
step = torch.compile(opt.step, backend="aot_eager")

for n in range(3):
    model(torch.ones(2, 4)).sum().backward()
    step()
    opt.zero_grad()
    for group in opt.param_groups:
        group["lr"] *= 0.5
print(opt.param_groups[0]["lr"], opt.param_groups[1]["lr"])
