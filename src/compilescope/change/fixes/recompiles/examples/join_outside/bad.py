import torch


@torch.compile(backend="eager")
def f(x, past):
    y = x.sin()
    seen = torch.stack(past)
    return y + seen.mean(0)


past = []
for _ in range(4):
    past.append(torch.ones(3))
    f(torch.ones(3), past)
