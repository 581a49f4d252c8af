# ideal: masked-store
"""A leaky ReLU written with a mask, in place, on a tensor that the caller keeps."""

import torch as th


def leak_(values: th.Tensor, slope: float = 0.1) -> th.Tensor:
    values[values < 0] *= slope
    return values.sum()


leak = th.compile(leak_, backend="aot_eager")
for shift in (0.0, 1.0):
    values = th.tensor([[-1.0, 2.0], [3.0, -4.0]]) + shift
    total = leak(values)
    print(round(total.item(), 4), values.tolist())
