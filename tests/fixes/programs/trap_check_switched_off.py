# ideal: outside-of-compiled
# trap: the program relies on the check that the environment variable would switch off
import os

import torch


def check(x):
    if os.getenv("MYLIB_SKIP_CHECKS", "0") == "1":
        return
    if x.isnan().any():
        raise ValueError("there are NaNs")


@torch.compile(backend="eager")
def safe_log(x):
    check(x)
    return x.log()


for x in (torch.ones(2), torch.tensor([1.0, float("nan")])):
    try:
        print(safe_log(x))
    except ValueError as error:
        print("refused:", error)
