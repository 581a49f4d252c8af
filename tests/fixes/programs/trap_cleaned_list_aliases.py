# ideal: none
# trap: without a NaN the list holds the tensors that the caller gave, and changes them
import torch


def clean(a, b):
    outs = [a, b]
    if any(torch.isnan(o).any() for o in outs):
        outs = [torch.nan_to_num(o) for o in outs]
    outs[0].add_(1)
    return outs[0] + outs[1]


run = torch.compile(clean, backend="eager")
for value in (1.0, float("nan")):
    a, b = torch.zeros(2), torch.full((2,), value)
    print(run(a, b).tolist(), a.tolist())
