# ideal: any
# trap: the side that is not taken subtracts, which raises for booleans
import torch


def weigh(flags):
    if flags.any():
        return flags * 2
    return flags - 1


run = torch.compile(weigh, backend="eager")
print(run(torch.tensor([True, False])).tolist())
print(run(torch.tensor([True, True])).tolist())
