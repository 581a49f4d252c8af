#: note: two sizes that are equal vary together or not at all
import torch


@torch.compile(backend="eager")
def loss(x, y):
    return (x.sum(1) - y).abs().mean()


for size in (8, 8, 5):
    print(loss(torch.ones(size, 3), torch.zeros(size)))
