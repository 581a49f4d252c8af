# ideal: none
# trap: the break was asked for: taking it out is for its author to decide, never verified
import torch


def f(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


print(torch.compile(f, backend="eager")(torch.ones(3)).tolist())
