# ideal: value-read-first
# trap: where nothing is left there is no first row; the test keeps Python from asking for it
import torch


def lead(scores):
    if scores.any():
        return scores[0] * 2
    return scores.sum()


run = torch.compile(lead, backend="eager")
print(run(torch.tensor([3.0, 1.0])).item())
print(run(torch.zeros(0)).item())
