# ideal: none
# sound: capture-scalars
# trap: what is picked by a number is part of the table, and changes with it
import torch


@torch.compile(backend="eager")
def pick(table, places):
    rows = []
    for place in places.tolist():
        rows.append(table[place])
    table.mul_(2)
    return rows[0] + rows[1]


for i in range(3):
    print(pick(torch.arange(6.0).reshape(3, 2), torch.tensor([i, 2 - i])).tolist())
