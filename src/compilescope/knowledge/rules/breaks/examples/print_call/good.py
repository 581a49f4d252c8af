import torch

def f(x):
    y = x + 1
    return y * 2, y

result, y = torch.compile(f, backend="eager")(torch.ones(3))
print("step", y)
print(result)
