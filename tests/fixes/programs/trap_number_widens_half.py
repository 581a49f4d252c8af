# ideal: value-read-first
# trap: beside one half-precision number, a float32 tensor in a number's place makes it float32
import torch


def damp(loss):
    factor = 0.5 if loss > 1 else 2.0
    return loss * factor


run = torch.compile(damp, backend="eager")
for value in (0.5, 4.0):
    out = run(torch.tensor(value, dtype=torch.float16))
    print(out.dtype, out.item())
