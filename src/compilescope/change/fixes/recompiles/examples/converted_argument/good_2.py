import torch


@torch.compile(backend="eager")
def look_up(table, ids):
    return table[ids]


table = torch.ones(5, 3)
look_up(table, torch.tensor([1, 2]).long())
look_up(table, torch.tensor([1, 2], dtype=torch.int32).long())
