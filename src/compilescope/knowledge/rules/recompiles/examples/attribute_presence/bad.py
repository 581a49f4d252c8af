import torch

class Options:
    pass

@torch.compile(backend="eager")
def f(x, options):
    return x * 2 if hasattr(options, "double") else x + 1

options = Options()
print(f(torch.ones(3), options))
options.double = True
print(f(torch.ones(3), options))
