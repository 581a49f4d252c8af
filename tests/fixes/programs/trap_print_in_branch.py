# ideal: any
# trap: the branch prints; computed anyway it would print always
import torch


def watch(x):
    if x.max() > 2:
        print("large")
        x = x / 2
    return x + 1


f = torch.compile(watch, backend="eager")
for k in (1.0, 3.0):
    print(f(torch.full((2,), k)).tolist())
