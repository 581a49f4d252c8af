# ideal: none
# sound: value-read-first
# trap: what is returned is a tensor, or the flag itself
import torch


def gate(x, flag):
    big = x.max() > 3 or flag
    if big:
        x = x / 2
    return x + 1, big


run = torch.compile(gate, backend="eager")
for k in (1.0, 5.0):
    for flag in (False, True):
        print(run(torch.full((3,), k), flag))
