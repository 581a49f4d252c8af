import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

before = torch.get_num_threads()
print(f(torch.ones(3)))
torch.set_num_threads(before + 1)
print(f(torch.ones(3)))
torch.set_num_threads(before)
