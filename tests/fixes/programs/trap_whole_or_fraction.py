# ideal: value-read-first
# trap: times 1 a whole number stays whole, times a tensor that is 1.0 or 2.0 it never does; the
# numbers stay as written if only the condition is read ahead
import torch


def rescaled(counts):
    scale = 2.0 if counts.max() > 4 else 1
    return counts * scale


run = torch.compile(rescaled, backend="eager")
for top in (3, 9):
    out = run(torch.tensor([1, top]))
    print(out.dtype, out.tolist())
