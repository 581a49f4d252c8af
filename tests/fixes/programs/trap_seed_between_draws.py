# ideal: any
# trap: the seed is set between two draws: set earlier, the first draw would change too
import torch


def f(x):
    first = torch.rand(3)
    torch.manual_seed(5)
    second = torch.rand(3)
    return x + first - second


torch.manual_seed(0)
run = torch.compile(f, backend="eager")
print(run(torch.zeros(3)).tolist())
print(run(torch.zeros(3)).tolist())
