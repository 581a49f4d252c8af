# ideal: none
# trap: a byte as a tensor is a mask, as a number it is a place
import torch


@torch.compile(backend="eager")
def pick(table, places):
    total = torch.zeros(2)
    for place in places.tolist():
        total = total + table[place].reshape(-1)[:2]
    return total


for i in range(3):
    print(
        pick(torch.arange(6.0).reshape(3, 2), torch.tensor([i, 2 - i], dtype=torch.uint8)).tolist()
    )
