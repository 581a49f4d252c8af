# ideal: none
# trap: how many classes a batch has is part of the result; the table beside it is wider
import torch
from torch.nn import functional as F

table = torch.arange(5.0)


@torch.compile(backend="eager")
def counts(labels):
    hot = F.one_hot(labels)
    return hot.sum(0), hot.shape[1] / len(table)


print(counts(torch.tensor([0, 2, 2])))
print(counts(torch.tensor([0, 1, 1])))
