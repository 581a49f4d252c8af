# ideal: none
# trap: the generator never ends; only the loop does
import torch


def halves(x):
    while True:
        x = x / 2
        yield x


@torch.compile(backend="eager")
def first_parts(x, parts):
    taken = 0
    for part in parts:
        x = x + part
        taken += 1
        if taken == 3:
            break
    return x


print(first_parts(torch.ones(2), halves(torch.ones(2))).tolist())
