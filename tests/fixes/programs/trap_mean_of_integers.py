# ideal: any
# trap: the mean of whole numbers is an error; a sum divided by a count is none
import torch


def average(x, mask):
    return x[mask].mean()


run = torch.compile(average, backend="eager")
mask = torch.tensor([True, False, True])
print(run(torch.tensor([1.0, 2.0, 4.0]), mask).item())
try:
    print(run(torch.tensor([1, 2, 4]), mask).item())
except RuntimeError:
    print("no mean of whole numbers")
