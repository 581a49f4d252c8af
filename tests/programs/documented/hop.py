import torch


@torch.compile(backend="eager")
def route(x):
    seen = []

    def left(x):
        seen.append(x)
        return x + 1

    return torch.cond(x.sum() > 0, left, lambda x: x - 1, (x,))


route(torch.ones(3))
