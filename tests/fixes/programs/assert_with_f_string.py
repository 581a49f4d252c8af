# ideal: async-assert
# An assert with an f-string, which Dynamo does not take by itself.
import torch


def lookup(table, index):
    assert index.min() >= 0 and index.max() < table.shape[0], f"index out of {table.shape[0]} rows"
    return table[index] * 2


get = torch.compile(lookup, backend="eager")
rows = torch.arange(12.0).reshape(4, 3)
print(get(rows, torch.tensor([0, 3])).tolist())
print(get(rows, torch.tensor([1, 1])).tolist())
