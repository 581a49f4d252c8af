# ideal: none
# trap: the compiled step itself lowers the rate, which its caller reads as a number
import torch

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.ones(4))
opt = torch.optim.SGD([weight], lr=0.5)


@torch.compile(backend="eager", dynamic=True)
def update(value, gradient):
    group = opt.param_groups[0]
    turns = range(int(group["lr"] * 8))
    for _ in turns:
        value = value - group["lr"] * gradient
    group["lr"] = group["lr"] * 0.5
    return value


for _ in range(3):
    value = update(torch.ones(4), torch.full((4,), 0.1))
    print(f"{value.sum().item():.5f}", type(opt.param_groups[0]["lr"]).__name__)
