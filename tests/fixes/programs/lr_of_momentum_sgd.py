# ideal: tensor-learning-rate
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
step = torch.compile(opt.step, backend="aot_eager")


def set_rate(optimizer, rate):
    for index, group in enumerate(optimizer.param_groups):
        group["lr"] = rate


for n in range(4):
    set_rate(opt, 0.1 / (n + 1))
    model(torch.ones(2, 4)).sum().backward()
    step()
    opt.zero_grad()
    print(n, opt.param_groups[0]["lr"])
print(f"{sum(p.sum().item() for p in model.parameters()):.5f}")
