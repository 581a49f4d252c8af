import torch

def f(x, y, flag):
    return x + y * flag

x, y = torch.ones(3), torch.ones(3)
flag = x.any() or y.any()
print(torch.compile(f, backend="eager")(x, y, flag))
