# ideal: where-for-if, where-for-conditional
# A truth and a number with names, tested later in two ways.
import torch


def clean(x, training=True):
    bad = bool(torch.isnan(x).any())
    level = x.mean().item()
    if bad and training:
        x = torch.nan_to_num(x)
    return x * 2 if level > 0.25 else x - 1


run = torch.compile(clean, backend="eager")
for value in (0.1, 1.0, float("nan")):
    print(run(torch.full((3,), value)))
