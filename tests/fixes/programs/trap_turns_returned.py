# ideal: none
# trap: who calls it gets the number of turns, and as a tensor that would be something else
import torch


@torch.compile(backend="eager")
def normalise(x):
    v = x.abs().max().item()
    turns = 0
    while v > 1:
        v = v / 2
        turns += 1
    return x * 0.5, turns


for top in (0.5, 3.0, 40.0):
    y, turns = normalise(torch.tensor([top, -1.0]))
    print(y.tolist(), "halved " * turns)
