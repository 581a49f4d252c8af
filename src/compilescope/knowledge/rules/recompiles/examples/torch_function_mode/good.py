import torch
from torch.overrides import TorchFunctionMode

class Plain(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

@torch.compile(backend="eager")
def f(x):
    return x * 2

with Plain():
    print(f(torch.ones(3)))
    print(f(torch.ones(3)))
