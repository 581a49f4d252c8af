import torch

f = torch.compile(lambda x, scale: x * scale, backend="eager")

for scale in (2.5, 3.5):
    print(f(torch.ones(3), torch.tensor(scale, dtype=torch.float64)))
