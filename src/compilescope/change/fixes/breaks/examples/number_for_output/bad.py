import torch


def f(x):
    loss = x.pow(2).mean()
    shown = loss.item()
    print(f"loss {shown:.3f}", shown)
    return loss * 2


torch.compile(f, backend="eager")(torch.ones(3))
