import torch

@torch.compile(backend="eager")
def f(x, options):
    return torch.where(options["double"], x * 2, x + 1)

print(f(torch.ones(3), {"double": torch.tensor(False)}))
print(f(torch.ones(3), {"double": torch.tensor(True)}))
