# ideal: while-loop
# Python computes with the number that was read, and the turns that it counts are an exponent.
import torch


@torch.compile(backend="eager")
def normalise(x):
    v = x.abs().max().item()
    turns = 0
    while v > 1:
        v /= 2
        turns += 1
    return x / 2**turns


for top in (0.5, 3.0, 40.0):
    print(normalise(torch.tensor([top, -1.0])).tolist())
