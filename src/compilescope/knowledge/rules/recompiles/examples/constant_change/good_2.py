import torch

@torch.compile(backend="eager")
def f(x, length):
    return x * length

for length in (3, 4):
    print(f(torch.ones(3), torch.tensor(len(list(iter(range(length)))))))
