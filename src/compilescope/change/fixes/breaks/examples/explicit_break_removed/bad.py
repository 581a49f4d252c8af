import torch


def f(x):
    y = x + 1
    torch._dynamo.graph_break()  # for debugging
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
