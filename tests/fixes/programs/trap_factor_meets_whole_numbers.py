# ideal: none
# trap: as a tensor, the factor would make float64 of whole numbers, which Python's makes float32
import torch


@torch.compile(backend="eager")
def scaled(x, counts):
    factor = 1
    while (x * factor).abs().max() > 1:
        factor = factor / 2
    return counts * factor


for top in (0.5, 3.0, 40.0):
    out = scaled(torch.tensor([top, -1.0]), torch.tensor([2, 3]))
    print(out.tolist(), out.dtype)
