import torch

def f(x):
    y = x * 2
    return y + 1, (y < 0).any()

result, negative = torch.compile(f, backend="eager")(torch.ones(3))
if negative:
    raise ValueError("negative")
print(result)
