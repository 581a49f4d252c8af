import torch

class Options:
    pass

@torch.compile(backend="eager")
def f(x, options):
    return x * options.scale if hasattr(options, "scale") else x

options = Options()
options.scale = 2
print(f(torch.ones(3), options))
del options.scale
print(f(torch.ones(3), options))
