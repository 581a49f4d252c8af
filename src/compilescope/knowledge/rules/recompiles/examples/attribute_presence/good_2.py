import torch

class Options:
    def __init__(self):
        self.scale = torch.tensor(1)

@torch.compile(backend="eager")
def f(x, options):
    return x * options.scale

options = Options()
options.scale = torch.tensor(2)
print(f(torch.ones(3), options))
options.scale = torch.tensor(1)
print(f(torch.ones(3), options))
