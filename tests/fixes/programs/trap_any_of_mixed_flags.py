# ideal: none
# trap: some of the flags are Python bools, which cannot be stacked with tensors
import torch


@torch.compile(backend="eager")
def f(flags, x):
    if any(flag for flag in flags):
        x = x * 2
    return x + 1


print(f([torch.tensor(False), True], torch.ones(3)).tolist())
print(f([torch.tensor(False), False], torch.ones(3)).tolist())
print(f([torch.tensor(True), False], torch.ones(3)).tolist())
