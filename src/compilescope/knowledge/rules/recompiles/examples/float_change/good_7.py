import torch

x = torch.tensor([1.0, 2.0])

@torch.compile(backend="aot_eager")
@torch.no_grad()
def f(x, y, m):
    return (x * m).add(y * (1 - m))

for m in (0.5, 0.625, 0.75):
    print(f(x, torch.ones(2), torch.tensor(m)))
