import torch


@torch.compile(backend="aot_eager")
@torch.no_grad()
def follow(slow, fast, rate):
    for one, other in zip(slow, fast):
        one.mul_(rate).add_(other * (1 - rate))


slow = [torch.zeros(3), torch.zeros(2, 2)]
fast = [torch.ones(3), torch.ones(2, 2)]
for step in range(5):
    follow(slow, fast, torch.tensor(0.5 + 0.0625 * step))
print([round(each.sum().item(), 4) for each in slow])
