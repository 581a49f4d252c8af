import torch


@torch.compile(backend="eager")
def loss(x, y):
    return (x.sum(1) - y).abs().mean()


for size in (8, 8, 5):
    x = torch.ones(size, 3)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    y = torch.zeros(size)
    torch._dynamo.maybe_mark_dynamic(y, 0)
    print(loss(x, y))
