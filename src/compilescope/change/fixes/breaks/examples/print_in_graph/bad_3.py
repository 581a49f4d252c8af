#: note: compiled code sets a global only when its graph has ended
import torch

STEP = 0


def f(x):
    global STEP
    STEP += 1
    print("step", STEP, x.sum().item())
    return x * 2


g = torch.compile(f, backend="eager")
g(torch.ones(3))
g(torch.ones(3))
