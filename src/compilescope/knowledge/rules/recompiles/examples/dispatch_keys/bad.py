import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

x = torch.ones(3, dtype=torch.cfloat)
print(f(x).resolve_conj())
print(f(x.conj()).resolve_conj())
