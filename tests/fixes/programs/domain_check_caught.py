# ideal: outside-of-compiled
"""The caller catches what a validation raises."""

import torch


class OutOfDomain(ValueError):
    pass


def check_domain(x, low, high):
    if x.min() < low or x.max() > high:
        raise OutOfDomain(f"expected values between {low} and {high}")


@torch.compile(backend="eager")
def logit(x):
    check_domain(x, 0.0, 1.0)
    return torch.log(x / (1 - x))


for batch in (torch.linspace(0.1, 0.9, 5), torch.linspace(0.2, 0.8, 5)):
    print(logit(batch))
try:
    logit(torch.linspace(0.5, 1.5, 5))
except OutOfDomain as error:
    print("skipped:", error)
