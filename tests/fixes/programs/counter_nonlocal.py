# ideal: none
# sound: dynamic-true
import torch


def make():
    n = 2

    @torch.compile(backend="eager")
    def step(x):
        nonlocal n
        n += 1
        return x / n

    return step


step = make()
for _ in range(4):
    print(step(torch.ones(2, 4)).sum().item())
