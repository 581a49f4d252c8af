# ideal: any
# trap: a float64 tensor in the number's place makes the result float64
"""Whole numbers times a float64 number: Python's number leaves the result at float32."""

import torch


def weigh(counts, weight):
    return counts * weight.item()


run = torch.compile(weigh, backend="eager")
out = run(torch.tensor([1, 2, 3]), torch.tensor(0.1, dtype=torch.float64))
print(out.dtype, out.tolist())
