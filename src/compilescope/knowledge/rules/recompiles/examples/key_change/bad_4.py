import types

import torch

@torch.compile(backend="eager")
def f(x, options):
    return x * options["scale"]

print(f(torch.ones(3), types.MappingProxyType({"scale": 2})))
print(f(torch.ones(3), types.MappingProxyType({"scale": 2, "name": "a"})))
