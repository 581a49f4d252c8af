#: because: torch itself requests
import torch

lin = torch.nn.Linear(3, 3)
opt = torch.optim.SGD(lin.parameters(), 0.1)
lin(torch.ones(3)).sum().backward()


def f(x):
    y = x + 1
    opt.step()
    return y


torch.compile(f, backend="eager")(torch.ones(3))
