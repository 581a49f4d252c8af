import torch

class Options:
    def __init__(self):
        self.double = torch.tensor(False)

@torch.compile(backend="eager")
def f(x, options):
    return torch.where(options.double, x * 2, x + 1)

options = Options()
print(f(torch.ones(3), options))
options.double = torch.tensor(True)
print(f(torch.ones(3), options))
