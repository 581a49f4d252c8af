import torch


@torch.compile(backend="eager")
def attend(query, key):
    return query @ key.T


x, memory = torch.ones(3, 3), torch.ones(3, 3)
attend(x, x.view_as(x))
attend(x, memory)
