#: because: the default calls encode
import torch

encoder = torch.nn.Linear(3, 3)


def encode(x):
    return encoder(x).relu()


@torch.compile(backend="eager")
def f(x, memory=None):
    if memory is None:
        memory = encode(x)
    return (x + memory).sum()


with torch.no_grad():
    for memory in (None, torch.arange(3.0)):
        f(torch.ones(3), memory)
