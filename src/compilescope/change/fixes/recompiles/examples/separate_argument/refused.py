#: because: no call passes one name twice
import torch


@torch.compile(backend="eager")
def attend(query, key):
    return query @ key.T


x, memory = torch.ones(3, 3), torch.ones(3, 3)
also = x
attend(x, also)
attend(x, memory)
